"""Rules for the protocol options of messages: their names and values.

Spec: message/spec.md#message-protocols; docs/semantics.md R21-R25, D7, D32, D33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from wirebook.definitions.compile import slots
from wirebook.definitions.compile.uritemplate import has_placeholder
from wirebook.definitions.explain.similar_names import nearest_name, nearest_typo
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.properties import LintedMessage, Property
from wirebook.definitions.normalize.message_options import MQTT_5_ONLY, OPTION_LAYOUTS
from wirebook.definitions.normalize.names import PROTOCOLS
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child

TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
STATUS: Final = re.compile(r"[1-5][0-9][0-9]\Z")
ASCII_NAME: Final = re.compile(r"[!-~]+\Z")
SYMBOL: Final = re.compile(r"[A-Za-z0-9_]+\Z")


def check_options(subject: LintedMessage) -> Iterator[Finding]:
    """Check the names and values of protocol options (R21-R25)."""
    protocol = subject.effective.get("protocol")
    options = subject.own.get("protocoloptions")
    if protocol not in PROTOCOLS or not isinstance(options, dict):
        return
    pointer = subject.at("protocoloptions")
    for name in options:
        if name not in OPTION_LAYOUTS[protocol].names:
            yield unknown_option(name, OPTION_LAYOUTS[protocol].names, pointer, f"{protocol} has no option")
        elif protocol == "MQTT/3.1.1" and name in MQTT_5_ONLY:
            message = f"'{name}' is an option of MQTT 5.0 and is ignored; remove it, or set 'protocol' to 'MQTT/5.0'"
            yield Finding("mqtt-5-option", child(pointer, name), message, "MQTT/5.0", name)
    for declared in subject.properties:
        yield from _check_names(declared, protocol)
        if rule := OPTION_RULES.get((protocol, declared.section, declared.name)):
            yield from rule(declared)
    yield from _check_header_keys(options, protocol, pointer)
    yield from _check_sections(options, protocol, pointer)


def unknown_option(name: str, known: Collection[str], pointer: str, unknown: str) -> Finding:
    """Return the finding for an unknown member of the object at `pointer`. The message begins with `unknown`."""
    if (meant := nearest_typo(name, known)) is not None:
        message = f"{unknown} '{preview(name)}'; did you mean '{meant}'?"
        return Finding("misspelt-option", child(pointer, name), message, meant, name)
    near = nearest_name(name, known)
    hint = f"; did you mean '{near}'?" if near is not None else ""
    message = f"{unknown} '{preview(name)}', so it is ignored{hint}"
    return Finding("unknown-option", child(pointer, name), message, list(known), name)


def _check_names(declared: Property, protocol: str) -> Iterator[Finding]:
    yield from _check_entry_name(declared)
    if protocol in ("HTTP", "NATS") and declared.section == "headers" and not TOKEN.match(declared.name):
        message = f"'{preview(declared.name)}' is not a valid header name"
        yield Finding("bad-header-name", child(declared.pointer, "name"), message, "a token (RFC 9110)", declared.name)
    is_amqp_section = protocol == "AMQP/1.0" and declared.section in slots.AMQP_SECTIONS
    has_free_names = is_amqp_section and declared.section not in ("properties", "header")
    if has_free_names and not ASCII_NAME.match(declared.name):
        message = f"'{preview(declared.name)}' must be a symbol of letters, digits and underscores"
        yield Finding("bad-property-name", declared.pointer, message, "A-Z a-z 0-9 _", declared.name)
    elif has_free_names and not SYMBOL.match(declared.name):
        # Reading: other ASCII characters in AMQP property names are not an error. An example in the specification has
        # hyphens, and AMQP itself allows any ASCII character.
        message = f"'{preview(declared.name)}' should have letters, digits and underscores only; it is used unchanged"
        yield Finding("name-is-no-symbol", declared.pointer, message, "A-Z a-z 0-9 _", declared.name)


def _check_entry_name(declared: Property) -> Iterator[Finding]:
    name = declared.fields.get("name")
    if declared.section in ("headers", "query", "user_properties") and not isinstance(name, str | None):
        message = f"'name' must be a string; found '{preview(name)}'"
        yield Finding("bad-header-name", child(declared.pointer, "name"), message, "a string", name)


def _check_sections(options: dict[str, Any], protocol: str, pointer: str) -> Iterator[Finding]:
    """Check the names in `properties` and `header` of AMQP, which the specification defines."""
    for section in ("properties", "header") if protocol == "AMQP/1.0" else ():
        members = options.get(section)
        for name in members if isinstance(members, dict) else ():
            if name not in slots.AMQP_SECTIONS[section]:
                known = tuple(slots.AMQP_SECTIONS[section])
                yield unknown_option(name, known, f"{pointer}/{section}", f"'{section}' has no property")


def _check_header_keys(options: dict[str, Any], protocol: str, pointer: str) -> Iterator[Finding]:
    headers = options.get("headers")
    if protocol != "KAFKA" or not isinstance(headers, dict):
        return
    for key, header in headers.items():
        if isinstance(header, dict) and header.get("name", key) != key:
            message = f"the key is '{preview(key)}' but 'name' is '{preview(header['name'])}', which is used"
            at = child(f"{pointer}/headers", key)
            yield Finding("header-name-differs", f"{at}/name", message, key, header["name"])


def _check_method(declared: Property) -> Iterator[Finding]:
    yield from _check_pattern(declared, TOKEN, "bad-method", "is not a valid HTTP method, such as GET")


def _check_path(declared: Property) -> Iterator[Finding]:
    """Check that a path has no query (which is matched separately) and no fragment (which is never sent)."""
    value = declared.fields.get("value")
    separator = re.search(r"[?#]", re.sub(r"\{[^{}]*\}", "", value)) if isinstance(value, str) else None
    if separator is None:
        return
    path, mark, rest = str(value).partition(separator[0])
    if mark == "?":
        pairs = [part.partition("=") for part in rest.partition("#")[0].split("&") if part]
        query = json.dumps([{"name": name, "value": text} for name, _, text in pairs], ensure_ascii=False)
        message = f'the path \'{preview(value)}\' has a query, so no request has this path; write "path": "{path}"'
        message += f' and "query": {query}'
    else:
        message = f'the path \'{preview(value)}\' has a fragment, which is never sent; write "path": "{path}"'
    yield Finding("query-in-path", declared.at("value"), message, path, value)


def _check_status(declared: Property) -> Iterator[Finding]:
    yield from _check_pattern(declared, STATUS, "bad-status", "is not a valid HTTP status code; use 100 to 599")


def _check_pattern(declared: Property, pattern: re.Pattern[str], code: str, reason: str) -> Iterator[Finding]:
    value = declared.fields.get("value")
    if isinstance(value, str) and not has_placeholder(value) and not pattern.match(value):
        yield Finding(code, declared.at("value"), f"'{preview(value)}' {reason}", None, value)


def _check_qos(declared: Property) -> Iterator[Finding]:
    value = declared.fields.get("value")
    if isinstance(value, int) and value not in (0, 1, 2):
        yield Finding("bad-qos", declared.at("value"), f"'qos' must be 0, 1 or 2; found {value}", [0, 1, 2], value)


def _check_topic(declared: Property) -> Iterator[Finding]:
    value = declared.fields.get("value")
    if isinstance(value, str) and ("+" in value or "#" in value):
        message = f"'{preview(value)}' has a wildcard; in the topic of a message use a placeholder: '{{name}}'"
        yield Finding("wildcard-in-topic", declared.at("value"), message, None, value)


def _check_subject(declared: Property) -> Iterator[Finding]:
    value = declared.fields.get("value")
    if isinstance(value, str) and {"*", ">"} & set(value.split(".")):
        message = f"'{preview(value)}' has a wildcard; in the subject of a message use a placeholder: '{{name}}'"
        yield Finding("wildcard-in-topic", declared.at("value"), message, None, value)


def _within(low: int, high: int) -> Callable[[Property], Iterator[Finding]]:
    """Return a rule for an integer option with these bounds."""

    def check(declared: Property) -> Iterator[Finding]:
        value = declared.fields.get("value")
        if isinstance(value, int) and not isinstance(value, bool) and not low <= value <= high:
            message = f"'{declared.name}' must be an integer from {low} to {high}; found {value}"
            yield Finding("value-out-of-bounds", declared.at("value"), message, [low, high], value)

    return check


def _check_amqp_id(declared: Property) -> Iterator[Finding]:
    value = declared.fields.get("value")
    if value is not None and not (isinstance(value, str) and has_placeholder(value)):
        message = "'message-id' is constant, so all messages have the same id; use a placeholder, or remove 'value'"
        yield Finding("fixed-id", declared.at("value"), message, None, value)


OPTION_RULES: Final[dict[tuple[str, str, str], Callable[[Property], Iterator[Finding]]]] = {
    ("HTTP", slots.BARE, "path"): _check_path,
    ("HTTP", slots.BARE, "method"): _check_method,
    ("HTTP", slots.BARE, "status"): _check_status,
    ("MQTT/3.1.1", slots.BARE, "qos"): _check_qos,
    ("MQTT/5.0", slots.BARE, "qos"): _check_qos,
    ("MQTT/3.1.1", slots.BARE, "topic_name"): _check_topic,
    ("MQTT/5.0", slots.BARE, "topic_name"): _check_topic,
    ("MQTT/5.0", slots.BARE, "response_topic"): _check_topic,
    ("MQTT/5.0", slots.BARE, "payload_format"): _within(0, 1),
    ("KAFKA", slots.BARE, "partition"): _within(0, 2**31 - 1),
    ("NATS", slots.BARE, "subject"): _check_subject,
    ("NATS", slots.BARE, "reply-to"): _check_subject,
    ("AMQP/1.0", "header", "priority"): _within(0, 255),
    ("AMQP/1.0", "properties", "message-id"): _check_amqp_id,
}
