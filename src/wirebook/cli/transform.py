"""`wirebook transform`: captured messages as those of another definition.

Spec: docs/build.md#transform
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from wirebook.cli.options import (
    AttributeOption,
    CaptureArgument,
    CatalogOption,
    ContextOption,
    EndpointOption,
    ForOption,
    ModeOption,
    PropertyOption,
    SetOption,
    request_of,
)
from wirebook.cli.output import print_note, print_problems
from wirebook.cli.sources import MessageLocation, check_standard_input, load_catalog, outcomes_of, read_context

if TYPE_CHECKING:
    from wirebook.definitions.build.request import Built

NOT_ALL = 1


def transform(
    capture: CaptureArgument,
    *,
    catalog: CatalogOption,
    to: Annotated[str, typer.Option(help="XID of the definition whose messages they become.")],
    endpoint: EndpointOption = None,
    accept_native: Annotated[
        bool, typer.Option(help="Match messages without envelope by definitions with one, too.")
    ] = False,
    context: ContextOption = None,
    set_: SetOption = None,
    attribute: AttributeOption = None,
    property_: PropertyOption = None,
    protocol: ForOption = None,
    mode: ModeOption = None,
) -> int:
    """Turn captured messages into those of another definition, a line of a capture file each.

    What the definitions share is the names of their placeholders. Messages that cannot be turned are told on standard
    error.

    Exit codes: 0 every message was turned, 1 some were not, 2 it could not run.
    """

    check_standard_input(capture=capture, catalog=catalog, context=context)
    request = request_of(read_context(context), set_, attribute, property_, protocol, mode)
    loaded = load_catalog(catalog, accept_native=accept_native)
    loaded.definition(to)  # fails early if it does not exist
    counts: Counter[str] = Counter(turned=0, not_turned=0)
    for place, outcome in outcomes_of(capture, loaded, endpoint):
        built = loaded.try_transform(outcome, to, request)
        counts["not_turned" if built.wire is None else "turned"] += 1
        _print(place, built)
    print_note(f"{counts['turned']:,} turned, {counts['not_turned']:,} not")
    return NOT_ALL if counts["not_turned"] else 0


def _print(place: MessageLocation, built: Built) -> None:
    from wirebook.bindings import to_line  # noqa: PLC0415

    if built.wire is not None:
        print(to_line(built.wire).decode())
    print_problems(problem.at(file=place.file, line=place.line) for problem in built.problems)
