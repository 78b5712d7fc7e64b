"""Messages of one protocol and mode as columns.

A row that a column cannot decide is `doubtful`; the reference reads it again.

Spec: docs/semantics.md#cloudevents-over-each-protocol; docs/semantics.md D24-D34.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.attributes import MANDATORY, URI_PATTERN, URI_REFERENCE_PATTERN
from wirebook.bindings.json_event import MEDIA_TYPE
from wirebook.bindings.received import CLOUDEVENTS, EMPTY_IS_NONE
from wirebook.definitions.compile.slots import ENVELOPE, EVENT_FORMAT, family
from wirebook.landing.columns.records import RecordColumns
from wirebook.landing.columns.slot_columns import (
    OFFSET,
    SECOND,
    UNPRINTABLE,
    Mask,
    Rows,
    SlotColumn,
    absent,
    any_of,
    codes_of,
    is_plain,
    mask_of,
)
from wirebook.landing.columns.wire_columns import WIRE_COLUMNS, WireColumns
from wirebook.text.mediatypes import is_media_type

T = TypeVar("T")

ENVELOPED: Final = "application/cloudevents"
# Protocols whose messages may have no content type. Only the definition tells whether they are structured events.
HIDING: Final = ("MQTT/3.1.1", "NATS")


@dataclass(slots=True)
class MessageColumns:
    """Messages of one protocol and mode as columns.

    Shape: `mode` is ``binary`` or ``structured``, or None if the messages are not events. `rows` are positions in the
    chunk, `places` positions in `parts`; each column has one value per row. `payload` is null where there is no data;
    with `json_values` it holds the JSON text of a structured event's data. `is_reinterpreted`: the messages are not
    marked as events, and only the definition tells whether they are (MQTT 3.1.1, bare NATS).
    """

    protocol: str
    is_cloudevent: bool
    mode: str | None
    rows: Rows
    places: Rows
    parts: WireColumns
    content_type: SlotColumn
    data_content_type: SlotColumn
    attributes: dict[str, SlotColumn]
    payload: pa.BinaryArray
    doubtful: Mask
    json_values: bool = False
    is_reinterpreted: bool = False
    _columns: dict[tuple[str, str], SlotColumn | None] = field(default_factory=dict)
    _made: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shows_protocol(self) -> bool:
        """Whether protocol slots can be observed. They cannot for events from a plain file."""
        return self.protocol != CLOUDEVENTS

    def column(self, section: str, name: str) -> SlotColumn | None:
        """The column of a slot, cached; None for a slot without a column."""
        slot = (section, name)
        if slot not in self._columns:
            self._columns[slot] = self._column(section, name)
        return self._columns[slot]

    def _column(self, section: str, name: str) -> SlotColumn | None:
        if name == "datacontenttype":
            return self.data_content_type
        if section == ENVELOPE:
            return self.attributes.get(name) or absent(len(self))
        if name == "wire-content-type":
            return self.content_type
        if name == EVENT_FORMAT:
            return self.content_type if self.mode == "structured" else absent(len(self))
        whole = self.parts.column(section, name)
        return None if whole is None else whole.take(self.places)

    @property
    def may_hide_structured(self) -> Mask | None:
        """A mask of the rows that may be structured events if a definition requires such events: Kafka messages without
        a content type. None if there are no such rows."""
        if self.protocol != "KAFKA" or self.is_cloudevent:
            return None
        return has_traces(self.payload) & ~self.content_type.present

    @property
    def tombstones(self) -> Mask:
        """A mask of the Kafka records with a null value."""
        if self.protocol != "KAFKA" or self.mode == "structured":
            return np.zeros(len(self), bool)
        return self.once("tombstones", lambda: mask_of(self.payload.is_null()))

    @property
    def has_empty_bodies(self) -> bool:
        """Whether a message without data may have a body of zero bytes."""
        return self.protocol in EMPTY_IS_NONE and self.mode != "structured"

    @property
    def payload_type(self) -> pa.StringArray:
        """The content type of the payload: that of the event or, in binary mode, by default that of the message. (NATS
        has a header for each.)"""
        own = self.data_content_type.text
        return pc.coalesce(own, self.content_type.text) if self.mode == "binary" else own

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """Call `make` once per object and key, and cache the result. A key begins with what is computed: without it,
        the arguments of two computations can be equal, as an Arrow type equals its name."""
        if key not in self._made:
            self._made[key] = make()
        value: T = self._made[key]
        return value

    def take(self, order: Rows) -> MessageColumns:
        """The messages in these rows, in this order."""
        if len(order) == len(self) and (order == np.arange(len(self))).all():
            return self
        return replace(
            self,
            rows=self.rows[order],
            places=self.places[order],
            content_type=self.content_type.take(order),
            data_content_type=self.data_content_type.take(order),
            attributes={name: column.take(order) for name, column in self.attributes.items()},
            payload=self.payload.take(pa.array(order)),
            doubtful=self.doubtful[order],
            _columns={},
            _made={},
        )


def split_records(records: RecordColumns) -> Iterator[MessageColumns]:
    """The messages of a chunk, by protocol and mode. The reference reads the records that are left out or doubtful."""
    for protocol, rows, fields in records.by_protocol():
        yield from _split(protocol, WIRE_COLUMNS[protocol](fields), rows)


def _split(protocol: str, parts: WireColumns, rows: Rows) -> Iterator[MessageColumns]:
    """The records of a protocol as events in binary mode, messages that are not events, and structured events."""
    enveloped, structured = _enveloped(parts.content_type)
    claims, sound = _claims(protocol, parts)
    if (binary := ~enveloped & sound).any():
        yield _events(protocol, parts, rows).take(np.flatnonzero(binary))
    if (native := ~enveloped & ~claims).any():
        natives = _natives(protocol, parts, rows).take(np.flatnonzero(native))
        yield natives
        if protocol in HIDING:
            yield from _hidden(natives)
    if structured.any():  # `events.structured_messages` reads attributes and data from the body
        yield replace(_events(protocol, parts, rows).take(np.flatnonzero(structured)), mode="structured")


def _enveloped(content_type: SlotColumn) -> tuple[Mask, Mask]:
    """A mask of the content types of structured events and batches, and a mask of those that are structured JSON
    events, the only ones that are read as columns."""
    encoded = content_type.text.dictionary_encode()
    media_types = [text.partition(";")[0].strip().lower() for text in encoded.dictionary.to_pylist()]
    enveloped = np.array([False, *(media_type.startswith(ENVELOPED) for media_type in media_types)])
    structured = np.array([False, *(media_type == MEDIA_TYPE for media_type in media_types)])
    codes = codes_of(encoded)
    return enveloped[codes], structured[codes]


def _claims(protocol: str, parts: WireColumns) -> tuple[Mask, Mask]:
    """A mask of the messages that claim to be events in binary mode, and a mask of those that certainly are valid
    events."""
    length = len(parts)
    columns = {name: parts.attributes.get(name, absent(length)) for name in MANDATORY}
    present = np.sum([column.present for column in columns.values()], axis=0)
    claims = present > 0
    if family(protocol) == "MQTT":
        claims = columns["specversion"].present & (present > 1)
    data_type = parts.attributes.get("datacontenttype", absent(length)) if protocol == "NATS" else parts.content_type
    return claims, sound_attributes({**parts.attributes, "datacontenttype": data_type}, length)


def sound_attributes(attributes: dict[str, SlotColumn], length: int) -> Mask:
    """A mask of the events whose attributes certainly follow the CloudEvents rules."""
    nothing = absent(length)
    sound = mask_of(pc.equal(attributes.get("specversion", nothing).text, "1.0"))
    for name in ("id", "source", "type"):  # false if it is absent
        sound &= mask_of(pc.not_equal(attributes.get(name, nothing).text, ""))
    subject = attributes.get("subject", nothing)
    sound &= mask_of(pc.not_equal(subject.text, "")) | ~subject.present
    for name, pattern in _PATTERNS.items():
        column = attributes.get(name, nothing)
        if column.text.null_count < length:
            sound &= mask_of(pc.match_substring_regex(column.text, pattern)) | ~column.present
    encoded = attributes.get("datacontenttype", nothing).text.dictionary_encode()
    sound &= np.array([True, *map(is_media_type, encoded.dictionary.to_pylist())])[codes_of(encoded)]
    for column in attributes.values():
        if not is_plain(column.text):
            sound &= ~mask_of(pc.match_substring_regex(column.text, UNPRINTABLE))
    return sound


_PATTERNS: Final = {
    "source": rf"^{URI_REFERENCE_PATTERN}$",
    "dataschema": rf"^{URI_PATTERN}$",
    "time": SECOND + r"(\.[0-9]{1,9})?" + OFFSET,
}


def _events(protocol: str, parts: WireColumns, rows: Rows) -> MessageColumns:
    """The records as events in binary mode."""
    data_type = parts.content_type
    if protocol == "NATS":
        data_type = parts.attributes.get("datacontenttype", absent(len(parts)))
    return MessageColumns(
        protocol=protocol,
        is_cloudevent=True,
        mode="binary",
        rows=rows,
        places=np.arange(len(rows)),
        parts=parts,
        content_type=parts.content_type,
        data_content_type=data_type,
        attributes={**parts.attributes, "datacontenttype": data_type},
        payload=_payloads(parts.data, protocol),
        doubtful=parts.doubtful | parts.content_type.doubtful,
    )


def _natives(protocol: str, parts: WireColumns, rows: Rows) -> MessageColumns:
    """The records as messages that are not events. A message is doubtful if it may be an event, which only the
    definition can tell (MQTT 3.1.1, bare NATS)."""
    payload = _payloads(parts.data, protocol)
    doubtful = parts.content_type.doubtful | parts.doubtful
    if protocol in HIDING:
        doubtful |= has_traces(payload)
    return MessageColumns(
        protocol=protocol,
        is_cloudevent=False,
        mode=None,
        rows=rows,
        places=np.arange(len(rows)),
        parts=parts,
        content_type=parts.content_type,
        data_content_type=parts.content_type,
        attributes={},
        payload=payload,
        doubtful=doubtful,
    )


def has_traces(payload: pa.BinaryArray) -> Mask:
    """A mask of the payloads that may be structured events; an escape may hide an attribute name."""
    traces = [mask_of(pc.match_substring(payload, trace)) for trace in (b"specversion", b"\\u")]
    return any_of(traces, len(payload))


def _hidden(natives: MessageColumns) -> Iterator[MessageColumns]:
    """The doubtful messages without headers, reinterpreted as structured events."""
    headers = natives.parts.sections.get("headers")
    bare = natives.doubtful if headers is None else natives.doubtful & ~headers.owning[natives.places]
    if not bare.any():
        return
    hidden, count = natives.take(np.flatnonzero(bare)), np.count_nonzero(bare)
    yield replace(
        hidden,
        is_cloudevent=True,
        mode="structured",
        is_reinterpreted=True,
        content_type=SlotColumn(pa.repeat(pa.scalar(MEDIA_TYPE), count), np.zeros(count, bool)),
        doubtful=np.zeros(count, bool),
        _columns={},
        _made={},
    )


def _payloads(data: pa.BinaryArray, protocol: str) -> pa.BinaryArray:
    """The data of messages; null where there is none. In some protocols, zero bytes are no data."""
    if protocol not in EMPTY_IS_NONE:
        return data
    empty = pc.equal(pc.binary_length(data), 0)
    return pc.if_else(empty, pa.scalar(None, pa.binary()), data) if mask_of(empty).any() else data
