"""Arguments and options that several commands share, and the build request of `build` and `transform`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wirebook.cli.settings import default_catalog

if TYPE_CHECKING:
    from wirebook.definitions.build.request import BuildRequest
    from wirebook.definitions.match.outcome import Outcome

STANDARD_INPUT: Final = "-"


class Protocol(StrEnum):
    """Protocols, by their names on the command line."""

    HTTP = "http"
    KAFKA = "kafka"
    MQTT3 = "mqtt3"
    MQTT5 = "mqtt5"
    AMQP = "amqp"
    NATS = "nats"


class ContentMode(StrEnum):
    """Content modes of CloudEvents."""

    BINARY = "binary"
    STRUCTURED = "structured"


class FailOn(StrEnum):
    """The messages that make `match` and `explain` exit with 1."""

    UNMATCHED = "unmatched"
    PROBLEMS = "problems"

    def is_met_by(self, outcome: Outcome) -> bool:
        """Return whether a message with this outcome makes the command fail."""
        return not outcome.matched or (self is FailOn.PROBLEMS and bool(outcome.problems))


class ProgressFormat(StrEnum):
    """Formats of progress lines."""

    TEXT = "text"
    JSON = "json"
    NONE = "none"


PROTOCOLS: Final = {
    Protocol.HTTP: "HTTP",
    Protocol.KAFKA: "KAFKA",
    Protocol.MQTT3: "MQTT/3.1.1",
    Protocol.MQTT5: "MQTT/5.0",
    Protocol.AMQP: "AMQP/1.0",
    Protocol.NATS: "NATS",
}

CaptureArgument = Annotated[
    str, typer.Argument(help="A capture file, a folder of capture files, or - for standard input.")
]
CatalogOption = Annotated[
    list[str],
    typer.Option(
        "--catalog",
        "-c",
        default_factory=default_catalog,
        show_default="WIREBOOK_CATALOG, else pyproject.toml",
        help="Catalogue: file, folder, URL, or - for standard input. Repeatable.",
    ),
]
TablesArgument = Annotated[str, typer.Argument(metavar="FOLDER", help="Folder of landed tables, or its URL.")]
TargetOption = Annotated[
    str, typer.Option("--to", metavar="FOLDER", help="Folder of the tables, or its URL; created if missing.")
]
TableSettingsOption = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="FILE",
        help="Settings of the tables, such as their names; the target keeps them. Default: those of the target.",
    ),
]
EndpointOption = Annotated[str | None, typer.Option(help="XID of the endpoint of all messages.")]
ConfluentOption = Annotated[
    bool, typer.Option("--confluent", help="Remove Confluent's prefix (a zero byte and an id) from Kafka values.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Count messages and write nothing.")]
FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        help="Exit with 1 if a message does not match (unmatched), or has a problem (problems). Default: exit with 0."
    ),
]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per message.")]
JsonClosingOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=TEXT", help="Value of a placeholder; overrides --context. Repeatable."),
]
MetricsOption = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Address of /metrics, /healthz and /readyz. Default: none.")
]
BatchProgressOption = Annotated[
    ProgressFormat,
    typer.Option(help="Progress: text, or one JSON object per batch on standard error (json), or none."),
]
SecretsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JSON file with credentials by endpoint; the environment overrides it."),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="FILE",
        help="JSON object with values of placeholders: strings, numbers, booleans; - for standard input.",
    ),
]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        metavar="NAME=VALUE",
        help="Value of a CloudEvents attribute that the definition leaves open. Repeatable.",
    ),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="SLOT=VALUE",
        help="Value of a protocol property, such as key or headers.X-Trace. Repeatable.",
    ),
]
ProtocolOption = Annotated[
    Protocol | None, typer.Option("--for", help="Protocol of the message, if the definition has none.")
]
ModeOption = Annotated[ContentMode | None, typer.Option(help="Content mode, if the definition leaves it open.")]


def request_of(  # noqa: PLR0917 (options)
    context: Mapping[str, Any],
    set_: list[str] | None,
    attribute: list[str] | None,
    property_: list[str] | None,
    protocol: Protocol | None,
    mode: ContentMode | None,
    **settings: Any,
) -> BuildRequest:
    """Return the build request of the options. Raises: typer.BadParameter for invalid or duplicate NAME=VALUE"""
    from wirebook.definitions.build.request import BuildRequest  # noqa: PLC0415 (a quarter of a second)

    return BuildRequest(
        {**context, **pairs_of("--set", set_)},
        attributes=pairs_of("--attribute", attribute),
        properties=_lists("--property", property_),
        protocol=protocol and PROTOCOLS[protocol],
        mode=mode and mode.value,  # type: ignore[arg-type]
        **settings,
    )


def address_of(option: str, text: str | None) -> tuple[str, int] | None:
    """Parse HOST:PORT. Raises: typer.BadParameter"""
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise typer.BadParameter(f"'{text}' is not HOST:PORT, such as 127.0.0.1:9100", param_hint=option)
    return host.strip("[]"), int(port)


def pairs_of(option: str, texts: list[str] | None) -> dict[str, str]:
    """Parse NAME=TEXT, each name once."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, value = _split(option, text)
        if name in pairs:
            raise typer.BadParameter(f"'{name}' is set twice; remove one of them", param_hint=option)
        pairs[name] = value
    return pairs


def _lists(option: str, texts: list[str] | None) -> dict[str, Any]:
    """Parse SLOT=VALUE. The values of a slot that occurs more than once become a list."""
    lists: dict[str, list[str]] = {}
    for text in texts or ():
        name, value = _split(option, text)
        lists.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}


def _split(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"'{text}' is not of the form NAME=VALUE", param_hint=option)
    return name, value
