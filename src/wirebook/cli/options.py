"""Arguments and options that several commands take, and the request that `build` and `transform` make of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wirebook.cli.settings import default_catalog

if TYPE_CHECKING:
    from wirebook.definitions.build.request import BuildRequest
    from wirebook.definitions.match.outcome import Outcome

STANDARD_INPUT: Final = "-"


class Protocol(StrEnum):
    """The names on the command line."""

    HTTP = "http"
    KAFKA = "kafka"
    MQTT3 = "mqtt3"
    MQTT5 = "mqtt5"
    AMQP = "amqp"
    NATS = "nats"


class ContentMode(StrEnum):
    BINARY = "binary"
    STRUCTURED = "structured"


class FailOn(StrEnum):
    """Which messages make `match` and `explain` exit with 1."""

    UNMATCHED = "unmatched"
    PROBLEMS = "problems"

    def is_met_by(self, outcome: Outcome) -> bool:
        return not outcome.matched or (self is FailOn.PROBLEMS and bool(outcome.problems))


PROTOCOLS: Final = {
    Protocol.HTTP: "HTTP",
    Protocol.KAFKA: "KAFKA",
    Protocol.MQTT3: "MQTT/3.1.1",
    Protocol.MQTT5: "MQTT/5.0",
    Protocol.AMQP: "AMQP/1.0",
    Protocol.NATS: "NATS",
}

CaptureArgument = Annotated[str, typer.Argument(help="A capture file, a folder of them, or - for standard input.")]
CatalogOption = Annotated[
    list[str],
    typer.Option(
        "--catalog",
        "-c",
        default_factory=default_catalog,
        show_default="WIREBOOK_CATALOG, else pyproject.toml",
        help="A catalogue: file, folder, URL, or - for standard input. Repeatable.",
    ),
]
EndpointOption = Annotated[str | None, typer.Option(help="XID of the endpoint that all messages came through.")]
ConfluentOption = Annotated[
    bool, typer.Option("--confluent", help="Take Confluent's prefix (a zero byte, an id) off Kafka values.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Count only, write nothing.")]
FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        help="Exit with 1 if any message did not match (unmatched), or any message has a problem (problems). "
        "Without this option the outcomes do not change the exit code."
    ),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="One JSON object for each message.")]
JsonClosingOption = Annotated[bool, typer.Option("--json", help="End with one JSON object, and print nothing else.")]

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=TEXT", help="The value of a placeholder; wins over --context. Repeatable."),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="FILE",
        help="A JSON object of placeholders: strings, numbers, booleans; - for standard input.",
    ),
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
ModeOption = Annotated[ContentMode | None, typer.Option(help="The content mode, where the definition leaves it open.")]


def request_of(  # noqa: PLR0917 (options)
    context: Mapping[str, Any],
    set_: list[str] | None,
    attribute: list[str] | None,
    property_: list[str] | None,
    protocol: Protocol | None,
    mode: ContentMode | None,
    **more: Any,
) -> BuildRequest:
    """What the options ask for. Raises: typer.BadParameter for what is not NAME=VALUE, or given twice."""
    from wirebook.definitions.build.request import BuildRequest  # noqa: PLC0415 (a quarter of a second)

    return BuildRequest(
        {**context, **_pairs("--set", set_)},
        attributes=_pairs("--attribute", attribute),
        properties=_lists("--property", property_),
        protocol=protocol and PROTOCOLS[protocol],
        mode=mode and mode.value,  # type: ignore[arg-type]
        **more,
    )


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """NAME=TEXT, each name once."""
    found: dict[str, str] = {}
    for each in given or ():
        name, value = _split(option, each)
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice", param_hint=option)
        found[name] = value
    return found


def _lists(option: str, given: list[str] | None) -> dict[str, Any]:
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
