"""Changes of payloads other than JSON: damaged bytes, and additions, removals and replacements in XML and Protobuf."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from synthesis import texts
from synthesis.changes import change
from synthesis.dice import Dice
from synthesis.messages import Record
from synthesis.records import dumps, event_in, payload_member, put_payload, raw_of

_TAG = re.compile(rb"<[A-Za-z][^<>]*>")
_TEXT = re.compile(rb">([^<>]+)<")
_ELEMENT = re.compile(rb"<([A-Za-z][\w:.-]*)[^<>]*>[^<>]*</\1>")
XSI = b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:'


def data_bytes(record: Record) -> bytes | None:
    """The data as bytes, in whatever mode; None where a structured event has a JSON value, or nothing."""
    event = event_in(record)
    if event is None:
        return raw_of(record.get(payload_member(record)))
    if isinstance(event.get("data_base64"), str):
        return base64.b64decode(event["data_base64"])
    data = event.get("data")
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else None


def put_data(record: Record, raw: bytes) -> Record:
    """Put where they were: as a text where it was one and they still are, else as Base64."""
    event = event_in(record)
    if event is None:
        return put_payload(record, raw)
    as_text = event.pop("data_base64", None) is None
    event.pop("data", None)
    try:
        event |= {"data": raw.decode()} if as_text else {"data_base64": base64.b64encode(raw).decode()}
    except UnicodeDecodeError:
        event["data_base64"] = base64.b64encode(raw).decode()
    return put_payload(record, dumps(event))


def _changed(record: Record, make: Callable[[bytes], bytes | None]) -> Record | None:
    raw = data_bytes(record)
    changed = make(raw) if raw is not None else None
    return None if changed is None or changed == raw else put_data(record, changed)


# -- bytes ------------------------------------------------------------------------------------------------------------


@change
def bytes_damaged(record: Record, dice: Dice) -> Record | None:
    """One byte else, more or less, a part twice or away."""

    def damaged(raw: bytes) -> bytes:
        at = dice.randrange(len(raw) + 1)
        end = min(len(raw), at + dice.randint(1, 4))
        new = bytes((dice.choice((0, 1, 7, 0x1C, 0x7F, 0x80, 0xFF, dice.randrange(256))),))
        return dice.choice((
            raw[:at] + new + raw[at + 1 :], raw[:at] + new + raw[at:], raw[:at] + raw[end:], raw[:end] + raw[at:], raw[:at],
        ))  # fmt: skip

    return _changed(record, damaged)


# -- Protobuf ---------------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def _field(number: int, dice: Dice) -> bytes:
    """A field of any encoding; of a number that the schema has, it may be another than the schema's."""
    kind = dice.choice((0, 0, 1, 2, 2, 3, 5))
    bodies: dict[int, Callable[[], bytes]] = {
        0: lambda: _varint(dice.choice((0, 1, 2, 77, 2**31, 2**32 - 1, 2**63, 2**64 - 1))),
        1: lambda: dice.randbytes(8),
        2: lambda: _sized(dice.choice((b"", b"x", b"\xff", texts.text(dice).encode(), b"\x08\x01", b"\x0a\x01x"))),
        3: lambda: _field(dice.randint(1, 3), dice) * dice.randint(0, 1) + _varint(number << 3 | 4),
        5: lambda: dice.randbytes(4),
    }
    return _varint(number << 3 | kind) + bodies[kind]()


def _sized(raw: bytes) -> bytes:
    return _varint(len(raw)) + raw


@change
def fields_more(record: Record, dice: Dice) -> Record | None:
    """Fields before or behind a message: once more, in another encoding, or such as the schema does not have."""

    def extended(raw: bytes) -> bytes | None:
        if raw.lstrip()[:1] in (b"{", b"[", b'"', b"<"):
            return None
        more = b"".join(_field(dice.choice((1, 2, 3, 4, 5, 6, 15, 16, 1000, 2**29 - 1)), dice) for _ in range(2))
        return raw + more if dice.random() < 0.7 else more + raw

    return _changed(record, extended)


# -- XML --------------------------------------------------------------------------------------------------------------


@change
def xml_texts(record: Record, dice: Dice) -> Record | None:
    """The text of an element changed, or written otherwise."""

    def changed(raw: bytes) -> bytes | None:
        matches = list(_TEXT.finditer(raw)) if raw.lstrip().startswith(b"<") else []
        if not matches:
            return None
        place = dice.choice(matches)
        old = place[1]
        new = dice.choice((
            b"", b" ", old + b" ", b"\n\t" + old, b"<![CDATA[" + old + b"]]>", b"<!-- c -->" + old, old + b"<?pi x?>", b"0",
            b"-0", b"1.0", b"1e3", b"NaN", b"+5", b"007", b"99999999999999999999", b"true", b"2026-02-30", b"&#65;", b"&#0;",
            b"&lt;x/&gt;", b"&undefined;", b"<x/>", b"\xc3\xa9", b"\xff", b"24:00:00", b"2026-01-01T24:00:00Z",
        ))  # fmt: skip
        return raw[: place.start(1)] + new + raw[place.end(1) :]

    return _changed(record, changed)


@change
def xml_elements(record: Record, dice: Dice) -> Record | None:
    """An element away, twice, renamed, in another namespace; attributes more; a prologue."""

    def changed(raw: bytes) -> bytes | None:
        if not raw.lstrip().startswith(b"<"):
            return None
        matches = list(dice.choice((_TAG, _ELEMENT)).finditer(raw))
        if not matches:
            return None
        place = dice.choice(matches)
        old = place[0]
        cut = _TAG.match(old)[0].rstrip(b">").rstrip(b"/")  # type: ignore[index]
        rest = old[len(cut) :]
        new = dice.choice((
            b"", old * 2, old.replace(b"<", b"<x", 1), cut + b' extra="1"' + rest, cut + b' xmlns="urn:x"' + rest,
            cut + XSI + b'nil="true"' + rest, cut + XSI + b'type="int"' + rest, cut + XSI + b'schemaLocation="urn:x y"' + rest,
            cut + b' xml:lang="en"' + rest, b"<!-- c -->" + old, b"<extra/>" + old, old + b"\n",
        ))  # fmt: skip
        prologue = dice.choice((
            b"", b"", b"", b"", b'<?xml version="1.0"?>', b"<!DOCTYPE x>", b'<!DOCTYPE x [<!ENTITY e "x">]>', b"\n", b"\xef\xbb\xbf",
            b'<?xml version="1.0" encoding="iso-8859-1"?>', b'<?xml version="1.0" encoding="utf-16"?>', b"<!-- c -->",
        ))  # fmt: skip
        return prologue + raw[: place.start()] + new + raw[place.end() :]

    return _changed(record, changed)
