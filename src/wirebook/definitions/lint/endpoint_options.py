"""The valid values of endpoint options, by protocol and option.

Spec: endpoint/spec.md#protocol-options (the tables).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from wirebook.definitions.compile.uritemplate import PLACEHOLDER, has_placeholder
from wirebook.text.json import is_json_integer

TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")


@dataclass(frozen=True, slots=True)
class OptionCheck:
    """A description of the valid values of an option, and the test for them. Placeholders are always valid."""

    allowed: str
    test: Callable[[Any], bool]

    def accepts(self, value: Any) -> bool:
        """Return whether a value is valid, or a string with a placeholder."""
        return self.test(value) or (isinstance(value, str) and has_placeholder(value))


def is_text(value: Any) -> bool:
    """Return whether a value is a non-empty string."""
    return isinstance(value, str) and bool(value)


def integer_in(low: int, high: int) -> OptionCheck:
    """Return the check for an integer with these bounds."""
    return OptionCheck(
        f"an integer from {low} to {high}", lambda value: is_json_integer(value) and low <= value <= high
    )


def one_of(*values: str | int) -> OptionCheck:
    """Return the check for one of these values."""
    listed = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in values)
    return OptionCheck(f"one of {listed}", lambda value: not isinstance(value, bool) and value in values)


def _is_header_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and _is_header_name(item.get("name")) and is_text(item.get("value")) for item in value
    )


def _is_header_name(name: Any) -> bool:
    return isinstance(name, str) and TOKEN.match(PLACEHOLDER.sub("x", name)) is not None


def _is_kafka_topic(value: Any) -> bool:
    return isinstance(value, str) and TOPIC.match(value) is not None and value not in (".", "..")


def _is_subject(value: Any) -> bool:
    return is_text(value) and not any(map(str.isspace, value)) and "" not in value.split(".")


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, value)) and all(map(is_text, value.values()))


TEXT: Final = OptionCheck("a non-empty string", is_text)
BOOLEAN: Final = OptionCheck("true or false", lambda value: isinstance(value, bool))
INTEGER: Final = OptionCheck("an integer", is_json_integer)
UINTEGER: Final = OptionCheck("a non-negative integer", lambda value: is_json_integer(value) and value >= 0)
TEXTS: Final = OptionCheck("an array of strings", lambda value: isinstance(value, list) and all(map(is_text, value)))
MAP: Final = OptionCheck("a map", lambda value: isinstance(value, dict))
TEXT_MAP: Final = OptionCheck("a map of non-empty strings", _is_text_map)
HEADERS: Final = OptionCheck("an array of objects with 'name' (a header name) and 'value' (a string)", _is_header_list)
KAFKA_TOPIC: Final = OptionCheck("a topic name of 1 to 249 characters, A-Z a-z 0-9 . _ -", _is_kafka_topic)
SUBJECT: Final = OptionCheck("a NATS subject without spaces and empty tokens", _is_subject)
METHOD: Final = OptionCheck("an HTTP method", lambda value: isinstance(value, str) and TOKEN.match(value) is not None)

_MQTT: Final = {
    "topic": TEXT,
    "topicfilter": TEXT,
    "qos": one_of(0, 1, 2),
    "retain": BOOLEAN,
    "willtopic": TEXT,
}
_TABLE: Final[dict[str, dict[str, OptionCheck]]] = {
    "": {"endpoints": OptionCheck("an array", lambda value: isinstance(value, list)), "deployed": BOOLEAN},
    "HTTP": {
        "method": METHOD,
        "headers": HEADERS,
        "query": TEXT_MAP,
        "apikeyname": TEXT,
        "apikeyin": one_of("header", "query"),
        "plainscheme": one_of("basic", "form", "query"),
        "plainusernamefield": TEXT,
        "plainpasswordfield": TEXT,
    },
    "AMQP/1.0": {
        "node": TEXT,
        "durable": BOOLEAN,
        "link-properties": TEXT_MAP,
        "connection-properties": TEXT_MAP,
        "distribution-mode": one_of("move", "copy"),
        "connection-capabilities": TEXTS,
        "node-capabilities": TEXTS,
        "source-filters": MAP,
        "dynamic": BOOLEAN,
        "terminus-durability": one_of("none", "configuration", "unsettled-state"),
        "expiry-policy": one_of("link-detach", "session-end", "connection-close", "never"),
        "timeout": UINTEGER,
        "sender-settle-mode": one_of("unsettled", "settled", "mixed"),
        "receiver-settle-mode": one_of("first", "second"),
    },
    "MQTT/3.1.1": _MQTT | {"cleansession": BOOLEAN},
    "MQTT/5.0": _MQTT
    | {
        "cleanstart": BOOLEAN,
        "sessionexpiryinterval": integer_in(0, 2**32 - 1),
        "sharedsubscriptiongroup": TEXT,
        "nolocal": BOOLEAN,
        "retainaspublished": BOOLEAN,
        "retainhandling": one_of(0, 1, 2),
    },
    "KAFKA": {
        "topic": KAFKA_TOPIC,
        "acks": integer_in(-1, 1),
        "key": TEXT,
        "partition": INTEGER,
        "consumergroup": TEXT,
        "headers": TEXT_MAP,
        "keyserializer": TEXT,
        "valueserializer": TEXT,
        "autooffsetreset": one_of("earliest", "latest", "none"),
        "enableautocommit": BOOLEAN,
    },
    "NATS": {"subject": SUBJECT, "subjectfilter": TEXT, "queuegroup": TEXT},
}
OPTION_CHECKS: Final = {(protocol, name): check for protocol, row in _TABLE.items() for name, check in row.items()}

# The usages (by first letter) to which an option applies. Options that are not listed apply to all usages.
_ROLES: Final[dict[str, dict[str, str]]] = {
    "AMQP/1.0": {"durable": "p", "distribution-mode": "cs", "source-filters": "cs"},
    "MQTT/3.1.1": {"topic": "p", "topicfilter": "sc", "retain": "p"},
    "MQTT/5.0": {
        "topic": "p",
        "topicfilter": "sc",
        "retain": "p",
        "sharedsubscriptiongroup": "sc",
        "nolocal": "sc",
        "retainaspublished": "sc",
        "retainhandling": "sc",
    },
    "KAFKA": {
        "acks": "p",
        "key": "p",
        "partition": "pc",
        "headers": "p",
        "keyserializer": "p",
        "valueserializer": "p",
        "consumergroup": "cs",
    },
    "NATS": {"subject": "p", "subjectfilter": "sc", "queuegroup": "sc"},
}
# Reading: filters are for subscribers; consumers may have them, too, as in older documents (there named `topic`).
OPTION_ROLES: Final = {
    (protocol, name): frozenset(usage for usage in ("producer", "consumer", "subscriber") if usage[0] in letters)
    for protocol, row in _ROLES.items()
    for name, letters in row.items()
}
