"""Shell commands: return a line of POSIX shell that sends a built message with a common program.

The payload is written to standard input, so that it may be any bytes; everything else is a quoted argument. A part of
the message that the program cannot express is a problem; it is never omitted.

Programs: curl, kcat 1.7, mosquitto_pub 2 (with -D for MQTT 5.0), the `nats` command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.bindings import (
    AnyMessage,
    Base64,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    MqttProperties,
    NatsMessage,
    bytes_of,
)
from wirebook.problems import Problem


@dataclass(slots=True)
class SendCommand:
    """A program with its arguments and standard input. A command with problems is incomplete."""

    arguments: list[str]
    stdin: bytes | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def shell(self) -> str:
        """The command as one line for a POSIX shell."""
        command = " ".join(map(shlex.quote, self.arguments))
        return command if self.stdin is None else f"{_printf(self.stdin)} | {command}"

    def add(self, *arguments: str) -> None:
        """Append arguments."""
        self.arguments += arguments

    def text(self, slot: str, value: Any) -> str:
        """Return a value as an argument, or add a problem for binary values and texts with NUL."""
        if isinstance(value, str) and "\0" not in value:
            return value
        self.add_problem(slot, "a string without NUL", "bytes" if isinstance(value, Base64) else value)
        return ""

    def add_problem(self, slot: str, expected: str, actual: Any) -> None:
        """Add a problem for a value that the program cannot express."""
        text = f"{self.arguments[0]} cannot send this message: {slot} must be {expected}"
        self.problems.append(Problem("not-expressible", text, slot=slot, expected=expected, actual=actual))

    def require(self, slot: str, value: str | None) -> str:
        """Return a value as an argument, or add a problem if it is missing."""
        if value is None:
            text = f"{self.arguments[0]} requires {slot}, and the message has none"
            self.problems.append(Problem("missing-required", text, slot=slot))
        return self.text(slot, value or "")


def _printf(data: bytes) -> str:
    """Return a printf command that prints these bytes: text unchanged, other bytes as octal escapes."""
    text = data.decode(errors="surrogateescape")
    if all(character.isprintable() or character in "\n\t" for character in text):
        return f"printf %s {shlex.quote(text)}"
    format_ = "".join(map(_escaped, text))
    if format_.startswith("-"):  # it would be parsed as an option
        format_ = f"\\055{format_[1:]}"
    return f"printf {shlex.quote(format_)}"


def _escaped(character: str) -> str:
    """Return a character, escaped for the format string of printf."""
    if character in "%\\":
        return {"%": "%%", "\\": "\\\\"}[character]
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogateescape"))


def command_of(wire: AnyMessage, program: str, server: str | None = None) -> SendCommand:
    """Return the command of `program` that sends a message to `server`.

    Problems: not-expressible, missing-required
    """
    classes, write, default = PROGRAMS[program]
    if isinstance(wire, classes):
        return write(wire, server or default)
    protocols = " or ".join(cls.protocol for cls in classes)
    text = f"{program} sends messages of {protocols}; this message has the protocol {wire.protocol}"
    problem = Problem("not-expressible", text, slot="protocol", expected=protocols, actual=wire.protocol)
    return SendCommand([program], problems=[problem])


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _curl(wire: HttpMessage, server: str) -> SendCommand:
    command = SendCommand(["curl"], bytes_of(wire.body))
    if wire.status is not None:
        command.add_problem("protocoloptions.status", "absent, because curl sends requests", wire.status)
    command.add("--silent", "--show-error", "--globoff", "--path-as-is", "--request", wire.method or "POST")
    for name, value in wire.headers or ():
        text = command.text(f"protocoloptions.headers.{name}", value)
        command.add("--header", f"{name}: {text}" if text else f"{name};")
    if wire.body is not None:
        command.add("--data-binary", "@-")
        if not any(name.lower() == "content-type" for name, _ in wire.headers or ()):
            command.add("--header", "Content-Type:")  # otherwise curl adds the content type of a form
    target = wire.target or ""
    command.add(target if "://" in target.partition("?")[0] else server.rstrip("/") + target)
    return command


# -- Kafka ------------------------------------------------------------------------------------------------------------


def _kcat(wire: KafkaRecord, server: str) -> SendCommand:
    """Key and value are read from standard input, so that both may be any bytes or null."""
    command = SendCommand(["kcat"])
    command.add("-P", "-b", server, "-t", command.require("protocoloptions.topic", wire.topic))
    if wire.partition is not None:
        command.add("-p", str(wire.partition))
    for name, value in wire.headers or ():
        slot = f"protocoloptions.headers.{name}"
        if not name or "=" in name:
            command.add_problem(slot, "a name without '='", name)
        command.add("-H", name if value is None else f"{name}={command.text(slot, value)}")
    _kcat_input(command, bytes_of(wire.key), bytes_of(wire.value))
    return command


def _kcat_input(command: SendCommand, key: bytes | None, value: bytes | None) -> None:
    """Choose delimiters and write key and value.

    kcat skips empty lines, splits at delimiters, and with -Z reads both an empty key and an empty value as null.
    """
    both = (key or b"") + (value or b"")
    free = [byte for byte in DELIMITERS if byte not in both]
    if len(free) < 2:
        command.add_problem(
            "payload", "without two of the 256 byte values, which kcat needs as delimiters", f"{len(both)} bytes"
        )
        return
    end, between = free[:2]
    command.add("-D", f"\\x{end:02x}")
    if key is None and value:
        command.stdin = value + bytes([end])
        return
    if value is None and key == b"":
        command.add_problem("protocoloptions.key", "null or not empty if the value is null", "")
    if key is None and value == b"":
        command.add_problem("payload", "null or not empty if the key is null", "")
    command.add("-K", f"\\x{between:02x}", *(["-Z"] if value is None else []))
    command.stdin = (key or b"") + bytes([between]) + (value or b"") + bytes([end])


# The line feed, then characters that are rare in texts, then all others.
DELIMITERS: Final = (*b"\n\x1f\x1e\x1d\x1c", *(byte for byte in range(1, 256) if byte not in b"\n\x1f\x1e\x1d\x1c"))


# -- MQTT -------------------------------------------------------------------------------------------------------------


def _mosquitto_pub(wire: Mqtt3Publish | Mqtt5Publish, server: str) -> SendCommand:
    command = SendCommand(["mosquitto_pub"], bytes_of(wire.payload) or None)
    host, _, port = server.rpartition(":")
    command.add("-h", (host or server).strip("[]"), "-p", port if host else "1883")
    command.add("-V", "5" if isinstance(wire, Mqtt5Publish) else "311")
    command.add("-t", command.require("protocoloptions.topic_name", wire.topic))
    if wire.qos is not None:
        command.add("-q", str(wire.qos))
    if wire.retain:
        command.add("-r")
    if isinstance(wire, Mqtt5Publish):
        _mqtt_properties(command, wire)
    command.add("-n" if command.stdin is None else "-s")
    return command


MQTT_OPTIONS: Final = {
    "payload_format": "payload-format-indicator",
    "message_expiry_interval": "message-expiry-interval",
    "response_topic": "response-topic",
    "correlation_data": "correlation-data",
    "content_type": "content-type",
}


def _mqtt_properties(command: SendCommand, wire: Mqtt5Publish) -> None:
    properties = wire.properties or MqttProperties()
    for name, option in MQTT_OPTIONS.items():
        value = getattr(properties, name)
        if value is not None:
            text = str(value) if isinstance(value, int) else command.text(f"protocoloptions.{name}", value)
            command.add("-D", "publish", option, text)
    for name, value in wire.user_properties or ():
        slot = f"protocoloptions.user_properties.{name}"
        command.add("-D", "publish", "user-property", command.text(slot, name), command.text(slot, value))


# -- NATS -------------------------------------------------------------------------------------------------------------

TEMPLATE: Final = "{{"  # the `nats` command would evaluate it as a template


def _nats(wire: NatsMessage, server: str) -> SendCommand:
    data = bytes_of(wire.data) or b""
    command = SendCommand(["nats"], data)
    subject = command.require("protocoloptions.subject", wire.subject)
    if subject.startswith("-"):
        command.add_problem("protocoloptions.subject", "without a leading '-', which begins an option", subject)
    command.add("--server", server, "pub", subject, "--force-stdin", "--quiet")
    if TEMPLATE.encode() in data or TEMPLATE in subject:
        command.add("--no-templates")
    if wire.reply_to is not None:
        command.add("--reply", command.text("protocoloptions.reply-to", wire.reply_to))
    for name, value in wire.headers or ():
        slot = f"protocoloptions.headers.{name}"
        text = command.text(slot, value)
        if TEMPLATE in text or text != text.strip():
            command.add_problem(slot, f"without '{TEMPLATE}' and without leading or trailing blanks", text)
        command.add("--header", f"{name}:{text}")
    return command


PROGRAMS: Final[dict[str, tuple[tuple[type[AnyMessage], ...], Callable[[Any, str], SendCommand], str]]] = {
    "curl": ((HttpMessage,), _curl, "http://localhost:8080"),
    "kcat": ((KafkaRecord,), _kcat, "localhost:9092"),
    "mosquitto_pub": ((Mqtt3Publish, Mqtt5Publish), _mosquitto_pub, "localhost:1883"),
    "nats": ((NatsMessage,), _nats, "nats://localhost:4222"),
}
