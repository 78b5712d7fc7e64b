"""`wirebook build`: a message by its definition, to look at, to keep as a capture, or as a command that sends it.

Spec: docs/build.md
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.options import (
    AttributeOption,
    CatalogOption,
    ContextOption,
    ForOption,
    ModeOption,
    PropertyOption,
    SetOption,
    request_of,
)
from wirebook.cli.output import print_json, print_problems
from wirebook.cli.sources import check_standard_input, load_catalog, read_bytes, read_context

if TYPE_CHECKING:
    from wirebook.bindings import AnyMessage
    from wirebook.problems import Problem

CANNOT_BUILD = 2


class OutputFormat(StrEnum):
    """What is printed."""

    CAPTURE = "capture"
    CURL = "curl"
    KCAT = "kcat"
    MOSQUITTO_PUB = "mosquitto_pub"
    NATS = "nats"


class Encoding(StrEnum):
    PLACE = "place"
    RAW = "raw"
    RFC6570 = "rfc6570"


EncodingOption = Annotated[Encoding, typer.Option(help="Percent-encoding of placeholders: by place, never, always.")]
IncompleteOption = Annotated[bool, typer.Option(help="Build although a base message is missing.")]
DataOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="The payload: JSON, or bytes as they are; - for standard input.")
]
FormOption = Annotated[
    OutputFormat | None,
    typer.Option("--as", help="Print a line of a capture file, or a command that sends the message."),
]
ServerOption = Annotated[str | None, typer.Option(help="Where such a command sends to: a URL, or host:port.")]


def build(
    definition: Annotated[str, typer.Argument(help="XID of the definition.")],
    *,
    catalog: CatalogOption,
    context: ContextOption = None,
    set_: SetOption = None,
    attribute: AttributeOption = None,
    property_: PropertyOption = None,
    data: DataOption = None,
    protocol: ForOption = None,
    mode: ModeOption = None,
    form: FormOption = None,
    server: ServerOption = None,
    encoding: EncodingOption = Encoding.PLACE,
    allow_incomplete: IncompleteOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: message, command, problems.")] = False,
) -> int:
    """Build a message by its definition: constants, placeholders, payload, all checked.

    Without --as the message is printed for people. Nothing is sent.
    """
    from wirebook.catalog.building import TextOrBytes  # noqa: PLC0415 (half a second)

    more = {"encoding": encoding.value, "allow_incomplete": allow_incomplete}
    check_standard_input(catalog=catalog, data=data, context=context)
    request = request_of(read_context(context), set_, attribute, property_, protocol, mode, **more)
    payload = None if data is None else TextOrBytes(read_bytes(data))
    built = load_catalog(catalog).try_build(definition, request, payload)
    wire, problems = built.wire, list(built.problems)
    text = None if wire is None else _text(wire, form, server, problems)
    print_problems(problems)
    if as_json:
        print_json(_to_dict(definition, wire, form, text, problems))
    elif text is not None:
        print(text)
    return 0 if text is not None else CANNOT_BUILD


def _text(wire: AnyMessage, form: OutputFormat | None, server: str | None, problems: list[Problem]) -> str | None:
    from wirebook.bindings import to_line  # noqa: PLC0415
    from wirebook.cli.senders import command_of  # noqa: PLC0415
    from wirebook.cli.wiretext import wire_text  # noqa: PLC0415

    if form is None:
        return wire_text(wire)
    if form is OutputFormat.CAPTURE:
        return to_line(wire).decode()
    command = command_of(wire, form.value, server)
    problems.extend(command.problems)
    return None if command.problems else command.shell


def _to_dict(
    definition: str, wire: AnyMessage | None, form: OutputFormat | None, text: str | None, problems: list[Problem]
) -> dict[str, Any]:
    from wirebook.bindings import to_record  # noqa: PLC0415

    is_command = form not in (None, OutputFormat.CAPTURE)
    return {
        "definition": definition,
        "message": None if wire is None else to_record(wire),
        "command": text if is_command else None,
        "problems": [problem.to_dict() for problem in problems],
    }
