"""What goes wrong in the made-up company: one row for each defect, with what should become of the message."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from wirebook.demo.kinds import BY_NAME, KINDS, Kind
from wirebook.demo.records import (
    Record,
    attribute,
    bytes_of,
    data_of,
    payload_of,
    set_attribute,
    set_bytes,
    set_data,
    set_pair,
    set_payload,
)


@dataclass(frozen=True)
class Defect:
    """A defect: what the `outcome` of a message with it is, and a `code` among the reasons.

    Shape: `spoil` changes the record, or gives the spoilt line itself; it says False where there is nothing to spoil.
    """

    name: str
    outcome: str
    code: str
    kinds: tuple[str, ...]
    weight: int
    spoil: Callable[[Record, Kind, Random], bool | bytes | None]


EXTENSIONS: Final = {"alarm": "severity", "assigned": "wave", "forecast": "model"}


# -- metadata -------------------------------------------------------------------------------------------------------


def _misspell_type(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    """A letter is lost: ``kestrel.fleet.postion``."""
    text = attribute(record, "type")
    cut = len(text) - 3 - random.randrange(3)
    set_attribute(record, "type", text[:cut] + text[cut + 1 :])


def _misroute(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    """A segment of the topic is another."""
    member = "subject" if record["protocol"] == "NATS" else "target" if record["protocol"] == "HTTP" else "topic"
    separator = "." if member == "subject" else "/"
    first, *rest = record[member].split(separator)
    if not first:
        record[member] = separator.join(["", "test", *rest[1:]])
    elif random.random() < 0.5:
        record[member] = separator.join([f"{first}-test", *rest])
    else:
        record[member] = separator.join([first, *rest, "v2"])


def _contradict(record: Record, kind: Kind, random: Random) -> None:
    """The subject speaks of another thing than the topic, the key or the source."""
    if kind.name == "charger":
        set_pair(record, "user_properties", "hub", "depot-9")
    else:
        set_attribute(record, "subject", f"{attribute(record, 'subject')}{random.randrange(10)}")


def _drop_mandatory(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    set_attribute(record, random.choice(("id", "source")), None)


def _old_specversion(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    set_attribute(record, "specversion", "0.3")


def _drop_extension(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    set_attribute(record, EXTENSIONS[kind.name], None)


def _misspell_header(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    set_pair(record, "headers", "movement", {"received": "recieved", "issued": "Issued"}[kind.name])


def _drop_content_type(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    if record["protocol"] == "KAFKA":
        set_pair(record, "headers", "content-type", None)
    else:
        del record["properties"]["content_type"]


def _drop_signature(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    set_pair(record, "headers", "X-Kestrel-Signature", None)


def _other_format(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    set_pair(record, "headers", "content-type", "application/cloudevents+protobuf")


def _unknown_endpoint(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    record["endpoint"] += "-old"


# -- payloads -------------------------------------------------------------------------------------------------------

GONE: Final = object()
# For each kind: where the payload breaks its schema (a path; GONE takes the member away) and with what.
VIOLATIONS: Final[dict[str, tuple[tuple[tuple[str | int, ...], Any], ...]]] = {
    "placed": (
        (("total",), GONE),
        (("lines", 0, "quantity"), 0),
        (("total", "amount"), "12,90"),
        (("coupon",), "SPRING5"),
        (("hub",), "southgate"),
    ),
    "packed": ((("crates",), []), (("crates", 0, "weight"), 250), (("packer",), None)),
    "cancelled": ((("reason",), "other"),),
    "customer_changed": ((("consents", "newsletter"), "yes"), (("since",), GONE)),
    "received": ((("quantity",), 0), (("batch",), GONE)),
    "issued": ((("left",), -3), (("reason",), "lost"), (("quantity",), "2")),
    "settled": ((("payments",), []), (("fee", "amount"), -25)),
    "position": (
        (("battery",), 131),
        (("lat",), 954.2),
        (("odometer",), 41_000_512),
        (("at",), GONE),
        (("ignition",), True),
    ),
    "delivered": ((("attempt",), 9), (("deposit",), 4.5), (("result",), "thrown-over-fence")),
    "assigned": ((("stops",), []), (("tour",), "12"), (("stops", 0, "eta"), "soon")),
    "temperature": ((("celsius",), 999.9), (("door",), "ajar"), (("celsius",), "-18.4"), (("door",), GONE)),
    "alarm": ((("code",), "on-fire"),),
    "metered": ((("imported",), 3.25), (("quality",), GONE), (("counter",), "12.5"), (("phases",), [])),
    "forecast": ((("points",), []), (("points", 0, "kilowatts"), -1)),
    "charger": ((("power",), -1.0), (("state",), "unknown"), (("energy",), GONE)),
}


def _violate(record: Record, kind: Kind, random: Random) -> bool:
    """One member breaks the schema."""
    if payload_of(record) is None:
        return False
    path, value = random.choice(VIOLATIONS[kind.name])
    data = data_of(record)
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.copy(value)
    set_data(record, data)
    return True


def _cut_payload(record: Record, kind: Kind, random: Random) -> bool:  # noqa: ARG001
    text = payload_of(record)
    if text is None:
        return False
    set_payload(record, text[: random.randrange(len(text) // 4, len(text) - 1)])
    return True


def _not_a_number(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    """What a sensor's firmware prints when it has no reading."""
    set_payload(record, '{"celsius":NaN,"door":"closed"}')


def _latin_1(record: Record, kind: Kind, random: Random) -> bool:  # noqa: ARG001
    """A name with an umlaut, in the encoding of twenty years ago."""
    text = payload_of(record)
    if text is None or text.isascii():
        return False
    set_bytes(record, text.encode("latin-1"))
    return True


def _cut_avro(record: Record, kind: Kind, random: Random) -> bool:  # noqa: ARG001
    set_bytes(record, bytes_of(record)[: random.randrange(4, 40)])
    return True


def _clear(record: Record, kind: Kind, random: Random) -> None:  # noqa: ARG001
    """An empty payload clears a retained message, and is no position."""
    set_payload(record, "")


def _cut_line(record: Record, kind: Kind, random: Random) -> bytes:  # noqa: ARG001
    """The recorder lost the rest of the line."""
    return b"cut"


# -- the table ------------------------------------------------------------------------------------------------------


def _names(*without: str, when: Callable[[Kind], bool] = lambda kind: True) -> tuple[str, ...]:  # noqa: ARG005
    return tuple(kind.name for kind in KINDS if when(kind) and kind.name not in without)


_EVENTS: Final = _names(when=lambda kind: kind.is_event)
_BINARY_EVENTS: Final = _names(when=lambda kind: kind.is_event and kind.mode == "binary")
_TWICE_SAID: Final = (*_names("settled", when=lambda kind: kind.is_event), "charger")
_KAFKA: Final = _names(when=lambda kind: kind.file.startswith("kafka"))
_TEMPLATED: Final = _names(*_KAFKA, "delivered", "alarm")

DEFECTS: Final = (
    Defect("misspelt-type", "unexpected", "mismatch", _EVENTS, 14, _misspell_type),
    Defect("wrong-topic", "unexpected", "mismatch", _KAFKA, 6, _misroute),
    Defect("wrong-segment", "unexpected", "template-mismatch", _TEMPLATED, 10, _misroute),
    Defect("contradiction", "unexpected", "placeholder-conflict", _TWICE_SAID, 12, _contradict),
    Defect("missing-mandatory", "malformed", "malformed-cloudevent", _BINARY_EVENTS, 9, _drop_mandatory),
    Defect("old-specversion", "malformed", "malformed-cloudevent", _BINARY_EVENTS, 2, _old_specversion),
    Defect("missing-extension", "unexpected", "missing-required", tuple(EXTENSIONS), 3, _drop_extension),
    Defect("misspelt-header", "unexpected", "mismatch", ("received", "issued"), 6, _misspell_header),
    Defect("no-content-type", "unexpected", "missing-value", ("received", "issued", "charger"), 5, _drop_content_type),
    Defect("missing-signature", "unexpected", "missing-required", ("settled",), 2, _drop_signature),
    Defect("other-format", "unsupported", "unsupported-event-format", ("forecast",), 2, _other_format),
    Defect("unknown-endpoint", "malformed", "unknown-endpoint", _names(), 2, _unknown_endpoint),
    Defect("schema-violation", "invalid-payload", "payload-invalid", tuple(VIOLATIONS), 42, _violate),
    Defect("cut-payload", "undecodable", "payload-syntax", _names("captured", "forecast"), 8, _cut_payload),
    Defect("not-a-number", "undecodable", "payload-syntax", ("temperature",), 3, _not_a_number),
    Defect("latin-1", "undecodable", "payload-syntax", ("placed", "customer_changed", "delivered"), 2, _latin_1),
    Defect("cut-avro", "undecodable", "payload-syntax", ("captured",), 3, _cut_avro),
    Defect("no-data", "invalid-payload", "missing-data", ("position", "temperature"), 4, _clear),
    Defect("cut-line", "malformed", "malformed-record", _names("captured"), 4, _cut_line),
)  # fmt: skip


def _of_kind(name: str) -> tuple[tuple[Defect, ...], tuple[int, ...]]:
    """The defects that a kind can have. Their weights are per kind: rare kinds have theirs as often as others."""
    fitting = tuple(defect for defect in DEFECTS if name in defect.kinds)
    return fitting, tuple(defect.weight for defect in fitting)


BY_KIND: Final = {name: _of_kind(name) for name in BY_NAME}
SHARE: Final = 0.025


def choose(kind: Kind, random: Random) -> Defect | None:
    """The defect of the next message of a kind; mostly none."""
    if random.random() >= SHARE:
        return None
    defects, weights = BY_KIND[kind.name]
    return random.choices(defects, weights)[0]


def spoil(defect: Defect, line: bytes, record: Record, kind: Kind, random: Random) -> bytes | Record | None:
    """The spoilt message: a record, or a line that is none; None when there was nothing to spoil."""
    done = defect.spoil(record, kind, random)
    if done is False:
        return None
    return line[: random.randrange(20, len(line) - 1)] if isinstance(done, bytes) else record
