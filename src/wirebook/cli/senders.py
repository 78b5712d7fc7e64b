"""Ready commands: a built message as a line of POSIX shell that sends it with a usual program.

Rule: the payload goes through standard input, so that it may be any bytes; everything else is an argument, quoted. What
a program has no way to say is a problem, never left out.

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
    """A program with its arguments, and what it reads; with problems it cannot be run."""

    arguments: list[str]
    stdin: bytes | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def shell(self) -> str:
        """The command as one line for a POSIX shell."""
        command = " ".join(map(shlex.quote, self.arguments))
        return command if self.stdin is None else f"{_printf(self.stdin)} | {command}"

    def add(self, *arguments: str) -> None:
        self.arguments += arguments

    def text(self, slot: str, value: Any) -> str:
        """A value as an argument; bytes that are no text, and NUL, cannot be one."""
        if isinstance(value, str) and "\0" not in value:
            return value
        self.refuse(slot, "a text without NUL", "bytes" if isinstance(value, Base64) else value)
        return ""

    def refuse(self, slot: str, expected: str, actual: Any) -> None:
        program = self.arguments[0]
        text = f"{program} cannot say this: {slot} has to be {expected}"
        self.problems.append(Problem("not-expressible", text, slot=slot, expected=expected, actual=actual))

    def need(self, slot: str, value: str | None) -> str:
        """A value without which nothing can be sent."""
        if value is None:
            text = f"{self.arguments[0]} needs {slot}, and nothing gives it"
            self.problems.append(Problem("missing-required", text, slot=slot))
        return self.text(slot, value or "")


def _printf(data: bytes) -> str:
    """What prints these bytes: a text as it is, anything else with octal escapes, which every printf has."""
    text = data.decode(errors="surrogateescape")
    if all(each.isprintable() or each in "\n\t" for each in text):
        return f"printf %s {shlex.quote(text)}"
    form = "".join(map(_in_format, text))
    if form.startswith("-"):  # else it were an option
        form = f"\\055{form[1:]}"
    return f"printf {shlex.quote(form)}"


def _in_format(character: str) -> str:
    """A character in a format of printf."""
    if character in "%\\":
        return {"%": "%%", "\\": "\\\\"}[character]
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogateescape"))


def command_of(wire: AnyMessage, program: str, server: str | None = None) -> SendCommand:
    """The command of `program` that sends a message to `server`. Problems: not-expressible, missing-required."""
    classes, write, default = PROGRAMS[program]
    if isinstance(wire, classes):
        return write(wire, server or default)
    protocols = " or ".join(cls.protocol for cls in classes)
    text = f"{program} sends {protocols}, and the message is {wire.protocol}"
    problem = Problem("not-expressible", text, slot="protocol", expected=protocols, actual=wire.protocol)
    return SendCommand([program], problems=[problem])


# -- HTTP -------------------------------------------------------------------------------------------------------------


def _curl(wire: HttpMessage, server: str) -> SendCommand:
    command = SendCommand(["curl"], bytes_of(wire.body))
    if wire.status is not None:
        command.refuse("protocoloptions.status", "absent, as curl sends requests", wire.status)
    command.add("--silent", "--show-error", "--globoff", "--path-as-is", "--request", wire.method or "POST")
    for name, value in wire.headers or ():
        text = command.text(f"protocoloptions.headers.{name}", value)
        command.add("--header", f"{name}: {text}" if text else f"{name};")
    if wire.body is not None:
        command.add("--data-binary", "@-")
        if not any(name.lower() == "content-type" for name, _ in wire.headers or ()):
            command.add("--header", "Content-Type:")  # else curl says that it is a form
    target = wire.target or ""
    command.add(target if "://" in target.partition("?")[0] else server.rstrip("/") + target)
    return command


# -- Kafka ------------------------------------------------------------------------------------------------------------


def _kcat(wire: KafkaRecord, server: str) -> SendCommand:
    """Key and value are read from standard input, so that both may be any bytes, and null."""
    command = SendCommand(["kcat"])
    command.add("-P", "-b", server, "-t", command.need("protocoloptions.topic", wire.topic))
    if wire.partition is not None:
        command.add("-p", str(wire.partition))
    for name, value in wire.headers or ():
        command.add("-H", _kcat_header(command, name, value))
    _kcat_input(command, bytes_of(wire.key), bytes_of(wire.value))
    return command


def _kcat_header(command: SendCommand, name: str, value: Any) -> str:
    slot = f"protocoloptions.headers.{name}"
    if not name or "=" in name:
        command.refuse(slot, "a name, without '='", name)
    return name if value is None else f"{name}={command.text(slot, value)}"


def _kcat_input(command: SendCommand, key: bytes | None, value: bytes | None) -> None:
    """kcat passes over an empty line, tells null from empty by -Z for key and value alike, and splits at delimiters."""
    both = (key or b"") + (value or b"")
    free = [byte for byte in DELIMITERS if byte not in both]
    if len(free) < 2:
        command.refuse("payload", "without at least two of the 256 bytes, as delimiters", f"{len(both)} bytes")
        return
    end, between = free[:2]
    command.add("-D", f"\\x{end:02x}")
    if key is None and value:
        command.stdin = value + bytes([end])
        return
    if value is None and key == b"":
        command.refuse("protocoloptions.key", "null or not empty where the value is null", "")
    if key is None and value == b"":
        command.refuse("payload", "null or not empty where the key is null", "")
    command.add("-K", f"\\x{between:02x}", *(["-Z"] if value is None else []))
    command.stdin = (key or b"") + bytes([between]) + (value or b"") + bytes([end])


# The line end, then what texts rarely hold, then anything.
DELIMITERS: Final = (*b"\n\x1f\x1e\x1d\x1c", *(byte for byte in range(1, 256) if byte not in b"\n\x1f\x1e\x1d\x1c"))


# -- MQTT -------------------------------------------------------------------------------------------------------------


def _mosquitto_pub(wire: Mqtt3Publish | Mqtt5Publish, server: str) -> SendCommand:
    command = SendCommand(["mosquitto_pub"], bytes_of(wire.payload) or None)
    host, _, port = server.rpartition(":")
    command.add("-h", (host or server).strip("[]"), "-p", port if host else "1883")
    command.add("-V", "5" if isinstance(wire, Mqtt5Publish) else "311")
    command.add("-t", command.need("protocoloptions.topic_name", wire.topic))
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

TEMPLATE: Final = "{{"  # what the `nats` command would fill in itself


def _nats(wire: NatsMessage, server: str) -> SendCommand:
    data = bytes_of(wire.data) or b""
    command = SendCommand(["nats"], data)
    subject = command.need("protocoloptions.subject", wire.subject)
    if subject.startswith("-"):
        command.refuse("protocoloptions.subject", "without '-' at its beginning, which begins an option", subject)
    command.add("--server", server, "pub", subject, "--force-stdin", "--quiet")
    if TEMPLATE.encode() in data or TEMPLATE in subject:
        command.add("--no-templates")
    if wire.reply_to is not None:
        command.add("--reply", command.text("protocoloptions.reply-to", wire.reply_to))
    for name, value in wire.headers or ():
        slot = f"protocoloptions.headers.{name}"
        text = command.text(slot, value)
        if TEMPLATE in text or text != text.strip():
            command.refuse(slot, f"without '{TEMPLATE}' and without blanks at its ends", text)
        command.add("--header", f"{name}:{text}")
    return command


PROGRAMS: Final[dict[str, tuple[tuple[type[AnyMessage], ...], Callable[[Any, str], SendCommand], str]]] = {
    "curl": ((HttpMessage,), _curl, "http://localhost:8080"),
    "kcat": ((KafkaRecord,), _kcat, "localhost:9092"),
    "mosquitto_pub": ((Mqtt3Publish, Mqtt5Publish), _mosquitto_pub, "localhost:1883"),
    "nats": ((NatsMessage,), _nats, "nats://localhost:4222"),
}
