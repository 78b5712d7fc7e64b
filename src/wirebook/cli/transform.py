"""`wirebook transform`: captured messages as those of another definition.

Spec: docs/build.md#transform
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from wirebook.cli.build import (
    PROTOCOLS,
    AttributeOption,
    CatalogOption,
    ForOption,
    ModeOption,
    PropertyOption,
    SetOption,
    lists_of,
    pairs_of,
)
from wirebook.cli.match import STANDARD_INPUT, source_path
from wirebook.cli.output import print_note, print_problems

if TYPE_CHECKING:
    from wirebook.message.request import Built
    from wirebook.spark.rows import Origin

NOT_ALL = 1


def transform(
    capture: Annotated[str, typer.Argument(help="A capture file, a folder of them, or - for standard input.")],
    *,
    catalog: CatalogOption,
    to: Annotated[str, typer.Option(help="XID of the definition whose messages they become.")],
    endpoint: Annotated[str | None, typer.Option(help="XID of the endpoint that all messages came through.")] = None,
    accept_native: Annotated[
        bool, typer.Option(help="Match messages without envelope by definitions with one, too.")
    ] = False,
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
    from wirebook.catalog import Catalog  # noqa: PLC0415 (half a second, all of these)
    from wirebook.catalog.building import usable_definition  # noqa: PLC0415
    from wirebook.message.matcher import MatchOptions  # noqa: PLC0415
    from wirebook.message.request import Request  # noqa: PLC0415
    from wirebook.spark.outcomes import outcomes_in  # noqa: PLC0415

    loaded = Catalog.load(*catalog, options=MatchOptions(accept_native=accept_native))
    print_problems(loaded.registry.unread)
    usable_definition(loaded, to)
    request = Request(
        pairs_of("--set", set_),
        None,
        pairs_of("--attribute", attribute),
        lists_of("--property", property_),
        protocol and PROTOCOLS[protocol],
        mode and mode.value,  # type: ignore[arg-type]
    )
    counts: Counter[str] = Counter(turned=0, not_turned=0)
    with source_path(capture) as path:
        for origin, outcome in outcomes_in(path, loaded, endpoint):
            if outcome is not None:
                built = loaded.try_transform(outcome, to, request)
                counts["not_turned" if built.wire is None else "turned"] += 1
                _print(STANDARD_INPUT if capture == STANDARD_INPUT else origin.file, origin, built)
    print_note(f"{counts['turned']:,} turned, {counts['not_turned']:,} not")
    return NOT_ALL if counts["not_turned"] else 0


def _print(file: str, origin: Origin, built: Built) -> None:
    from wirebook.bindings import to_line  # noqa: PLC0415

    if built.wire is not None:
        print(to_line(built.wire).decode())
    print_problems(problem.at(file=file, line=origin.line) for problem in built.problems)
