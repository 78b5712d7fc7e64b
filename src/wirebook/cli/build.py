"""`wirebook build`: build a message from its definition, and print it, a capture line, or a command that sends it.

Spec: docs/build.md
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from wirebook.cli.exit_codes import CANNOT_RUN, OK
from wirebook.cli.options import (
    AttributeOption,
    CatalogOption,
    ContextOption,
    ModeOption,
    PropertyOption,
    ProtocolOption,
    SetOption,
    request_of,
)
from wirebook.cli.output import print_json, print_problems
from wirebook.cli.sources import check_standard_input, load_catalog, read_bytes, read_context

if TYPE_CHECKING:
    from wirebook.bindings import AnyMessage
    from wirebook.problems import Problem


class OutputFormat(StrEnum):
    """The formats of the output."""

    CAPTURE = "capture"
    CURL = "curl"
    KCAT = "kcat"
    MOSQUITTO_PUB = "mosquitto_pub"
    NATS = "nats"


class Encoding(StrEnum):
    """How the values of placeholders are percent-encoded."""

    PLACE = "place"
    RAW = "raw"
    RFC6570 = "rfc6570"


EncodingOption = Annotated[
    Encoding, typer.Option(help="Percent-encoding of placeholder values: depending on their place, never, or always.")
]
IncompleteOption = Annotated[bool, typer.Option(help="Build the message even if its base message is missing.")]
DataOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File with the payload: JSON, or bytes sent unchanged; - for standard input."),
]
OutputFormatOption = Annotated[
    OutputFormat | None,
    typer.Option(
        "--as", help="Print a line of a capture file, or a command that sends the message. Default: readable text."
    ),
]
ServerOption = Annotated[str | None, typer.Option(help="URL or host:port that the command sends to.")]


def build(
    definition: Annotated[str, typer.Argument(help="XID of the definition.")],
    *,
    catalog: CatalogOption,
    context: ContextOption = None,
    set_: SetOption = None,
    attribute: AttributeOption = None,
    property_: PropertyOption = None,
    data: DataOption = None,
    protocol: ProtocolOption = None,
    mode: ModeOption = None,
    output_format: OutputFormatOption = None,
    server: ServerOption = None,
    encoding: EncodingOption = Encoding.PLACE,
    allow_incomplete: IncompleteOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with the message, the command and problems.")
    ] = False,
) -> int:
    """Build a message from its definition and check its constants, placeholders and payload.

    The message is printed, not sent.

    Exit codes: 0 built, 2 the message cannot be built.
    """
    from wirebook.catalog.building import TextOrBytes  # noqa: PLC0415 (half a second)

    settings = {"encoding": encoding.value, "allow_incomplete": allow_incomplete}
    check_standard_input(catalog=catalog, data=data, context=context)
    request = request_of(read_context(context), set_, attribute, property_, protocol, mode, **settings)
    payload = None if data is None else TextOrBytes(read_bytes(data))
    built = load_catalog(catalog).try_build(definition, request, payload)
    wire, problems = built.wire, list(built.problems)
    text = None if wire is None else _output_text(wire, output_format, server, problems)
    print_problems(problems)
    if as_json:
        from wirebook.bindings import to_record  # noqa: PLC0415

        is_command = output_format not in (None, OutputFormat.CAPTURE)
        print_json(
            {
                "definition": definition,
                "message": None if wire is None else to_record(wire),
                "command": text if is_command else None,
                "problems": [problem.to_dict() for problem in problems],
            }
        )
    elif text is not None:
        print(text)
    return OK if text is not None else CANNOT_RUN


def _output_text(
    wire: AnyMessage, output_format: OutputFormat | None, server: str | None, problems: list[Problem]
) -> str | None:
    from wirebook.bindings import to_line  # noqa: PLC0415
    from wirebook.cli.senders import command_of  # noqa: PLC0415
    from wirebook.cli.wiretext import wire_text  # noqa: PLC0415

    if output_format is None:
        return wire_text(wire)
    if output_format is OutputFormat.CAPTURE:
        return to_line(wire).decode()
    command = command_of(wire, output_format.value, server)
    problems.extend(command.problems)
    return None if command.problems else command.shell
