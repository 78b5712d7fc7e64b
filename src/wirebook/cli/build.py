"""`wirebook build`: a message by its definition, to look at, to keep as a capture, or as a command that sends it.

Spec: docs/build.md
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.output import print_json, print_problems
from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from wirebook.bindings import AnyMessage

STANDARD_INPUT = "-"
CANNOT_BUILD = 2


class Protocol(StrEnum):
    """The names on the command line."""

    HTTP = "http"
    KAFKA = "kafka"
    MQTT3 = "mqtt3"
    MQTT5 = "mqtt5"
    AMQP = "amqp"
    NATS = "nats"


class Mode(StrEnum):
    BINARY = "binary"
    STRUCTURED = "structured"


class Form(StrEnum):
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


PROTOCOLS = {
    Protocol.HTTP: "HTTP",
    Protocol.KAFKA: "KAFKA",
    Protocol.MQTT3: "MQTT/3.1.1",
    Protocol.MQTT5: "MQTT/5.0",
    Protocol.AMQP: "AMQP/1.0",
    Protocol.NATS: "NATS",
}

CatalogOption = Annotated[
    list[str], typer.Option("--catalog", "-c", help="A catalogue: file, folder or URL. Repeatable.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=TEXT", help="What a placeholder stands for. Repeatable.")
]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=VALUE", help="A CloudEvents attribute that is left open. Repeatable."),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="SLOT=VALUE", help="A protocol slot: key, headers.X-Trace. Repeatable."),
]
ForOption = Annotated[Protocol | None, typer.Option("--for", help="The protocol, where the definition binds none.")]
ModeOption = Annotated[Mode | None, typer.Option(help="The content mode, where the definition leaves it open.")]
EncodingOption = Annotated[Encoding, typer.Option(help="Percent-encoding of placeholders: by place, never, always.")]
IncompleteOption = Annotated[bool, typer.Option(help="Build although a base message is missing.")]


def build(
    definition: Annotated[str, typer.Argument(help="XID of the definition.")],
    *,
    catalog: CatalogOption,
    set_: SetOption = None,
    attribute: AttributeOption = None,
    property_: PropertyOption = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The payload: JSON, or bytes as they are; - for standard input."),
    ] = None,
    protocol: ForOption = None,
    mode: ModeOption = None,
    form: Annotated[
        Form | None, typer.Option("--as", help="Print a line of a capture file, or a command that sends the message.")
    ] = None,
    server: Annotated[str | None, typer.Option(help="Where such a command sends to: a URL, or host:port.")] = None,
    encoding: EncodingOption = Encoding.PLACE,
    allow_incomplete: IncompleteOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: message, command, problems.")] = False,
) -> int:
    """Build a message by its definition: constants, placeholders, payload, all checked.

    Without --as the message is printed for people. Nothing is sent.
    """
    from wirebook.catalog import Catalog  # noqa: PLC0415 (half a second)
    from wirebook.catalog.building import TextOrBytes  # noqa: PLC0415
    from wirebook.message.request import Request  # noqa: PLC0415

    payload = None if data is None else TextOrBytes(_read(data))
    request = Request(
        pairs_of("--set", set_),
        None,
        pairs_of("--attribute", attribute),
        lists_of("--property", property_),
        protocol and PROTOCOLS[protocol],
        mode and mode.value,  # type: ignore[arg-type]
        encoding=encoding.value,
        allow_incomplete=allow_incomplete,
    )
    loaded = Catalog.load(*catalog)
    print_problems(loaded.registry.unread)
    built = loaded.try_build(definition, request, payload)
    wire, problems = built.wire, list(built.problems)
    text = None if wire is None else _text(wire, form, server, problems)
    print_problems(problems)
    if as_json:
        print_json(_to_dict(definition, wire, form, text, problems))
    elif text is not None:
        print(text)
    return 0 if text is not None else CANNOT_BUILD


def _text(wire: AnyMessage, form: Form | None, server: str | None, problems: list[Problem]) -> str | None:
    from wirebook.bindings import to_line  # noqa: PLC0415
    from wirebook.cli.senders import command_of  # noqa: PLC0415
    from wirebook.cli.wiretext import wire_text  # noqa: PLC0415

    if form is None:
        return wire_text(wire)
    if form is Form.CAPTURE:
        return to_line(wire).decode()
    command = command_of(wire, form.value, server)
    problems.extend(command.problems)
    return None if command.problems else command.shell


def _to_dict(
    definition: str, wire: AnyMessage | None, form: Form | None, text: str | None, problems: list[Problem]
) -> dict[str, Any]:
    from wirebook.bindings import to_record  # noqa: PLC0415

    is_command = form not in (None, Form.CAPTURE)
    return {
        "definition": definition,
        "message": None if wire is None else to_record(wire),
        "command": text if is_command else None,
        "problems": [problem.to_dict() for problem in problems],
    }


# -- what the command line gives --------------------------------------------------------------------------------------


def pairs_of(option: str, given: list[str] | None) -> dict[str, str]:
    """NAME=TEXT, each name once."""
    found: dict[str, str] = {}
    for each in given or ():
        name, value = _split(option, each)
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice", param_hint=option)
        found[name] = value
    return found


def lists_of(option: str, given: list[str] | None) -> dict[str, Any]:
    """SLOT=VALUE; the values of one that is given more than once are a list."""
    found: dict[str, list[str]] = {}
    for each in given or ():
        name, value = _split(option, each)
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _split(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"'{text}' is not NAME=VALUE", param_hint=option)
    return name, value


def _read(data: str) -> bytes:
    if data == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(data).read_bytes()
    except OSError as error:
        raise WirebookError(Problem("unreadable-file", f"{data}: {error.strerror}", file=data)) from error
