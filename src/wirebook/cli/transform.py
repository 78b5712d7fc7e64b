"""`wirebook transform`: convert captured messages to another definition.

Spec: docs/build.md#transform
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from wirebook.cli.exit_codes import FINDINGS, OK
from wirebook.cli.options import (
    AttributeOption,
    CaptureArgument,
    CatalogOption,
    ContextOption,
    EndpointOption,
    ModeOption,
    PropertyOption,
    ProtocolOption,
    SetOption,
    request_of,
)
from wirebook.cli.output import print_note, print_problems
from wirebook.cli.sources import check_standard_input, load_catalog, outcomes_of, read_context


def transform(
    capture: CaptureArgument,
    *,
    catalog: CatalogOption,
    to: Annotated[str, typer.Option(help="XID of the target definition.")],
    endpoint: EndpointOption = None,
    accept_native: Annotated[
        bool, typer.Option(help="Also match messages without an envelope to definitions with one.")
    ] = False,
    context: ContextOption = None,
    set_: SetOption = None,
    attribute: AttributeOption = None,
    property_: PropertyOption = None,
    protocol: ProtocolOption = None,
    mode: ModeOption = None,
) -> int:
    """Convert captured messages to another definition, and print each as a line of a capture file.

    Placeholders of the same name carry the values over. Messages that cannot be converted are listed on standard error.

    Exit codes: 0 all messages were converted, 1 some were not, 2 cannot run.
    """
    from wirebook.bindings import to_line  # noqa: PLC0415

    check_standard_input(capture=capture, catalog=catalog, context=context)
    request = request_of(read_context(context), set_, attribute, property_, protocol, mode)
    loaded = load_catalog(catalog, accept_native=accept_native)
    loaded.definition(to)  # fails early if it does not exist
    counts: Counter[str] = Counter(converted=0, failed=0)
    for place, outcome in outcomes_of(capture, loaded, endpoint):
        built = loaded.try_transform(outcome, to, request)
        counts["failed" if built.wire is None else "converted"] += 1
        if built.wire is not None:
            print(to_line(built.wire).decode())
        print_problems(problem.at(file=place.file, line=place.line) for problem in built.problems)
    print_note(f"{counts['converted']:,} converted, {counts['failed']:,} failed")
    return FINDINGS if counts["failed"] else OK
