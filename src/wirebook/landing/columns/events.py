"""Structured events as columns: a batch of JSON texts, one CloudEvent each, decoded in one call.

A row is doubtful, and goes to the reference, if for example its body has an unknown or duplicate member, or its data is
not JSON.

Spec: cloudevents json-format.md; docs/semantics.md#cloudevents-over-each-protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import repeat
from operator import attrgetter, is_
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Raw

from wirebook.bindings.attributes import WELL_KNOWN
from wirebook.bindings.json_event import MAX_EVENT_BYTES
from wirebook.bindings.received import CLOUDEVENTS
from wirebook.landing.columns.message_columns import MessageColumns, sound_attributes, split_records
from wirebook.landing.columns.records import RecordColumns
from wirebook.landing.columns.slot_columns import SlotColumn, absent, codes_of, mask_of, texts
from wirebook.landing.columns.wire_columns import WireColumns
from wirebook.schema.json_lines import decode_column
from wirebook.text.json import MAX_DEPTH
from wirebook.text.mediatypes import is_json
from wirebook.text.member_counts import count_members

TEXT: Final = str | None | msgspec.UnsetType
EXTENSION: Final = str | bool | int | None | msgspec.UnsetType
DATA: Final = ("data", "data_base64")
# Protocols whose attributes have no prefix. A user property is an attribute only if the event has an attribute of the
# same name.
UNPREFIXED: Final = ("MQTT/5.0",)


def messages_by_mode(records: RecordColumns, extensions: frozenset[str]) -> Iterator[MessageColumns]:
    """The messages of a chunk by protocol and mode: events in binary mode, messages that are not events, structured
    events."""
    for messages in split_records(records):
        yield structured_messages(messages, extensions) if messages.mode == "structured" else messages


def messages_of_events(lines: pa.LargeBinaryArray, extensions: frozenset[str]) -> MessageColumns:
    """The events of a plain file, one per line. A line with an array (a batch of events) is doubtful."""
    nothing, no_doubt = absent(len(lines)), np.zeros(len(lines), bool)
    rows = np.arange(len(lines), dtype=np.int64)
    payload = lines.cast(pa.binary())
    bare = MessageColumns(
        protocol=CLOUDEVENTS,
        is_cloudevent=True,
        mode="structured",
        rows=rows,
        places=rows,
        parts=WireColumns(nothing, {}, payload, no_doubt),
        content_type=nothing,
        data_content_type=nothing,
        attributes={},
        payload=payload,
        doubtful=no_doubt,
    )
    return structured_messages(bare, extensions)


def structured_messages(messages: MessageColumns, extensions: frozenset[str]) -> MessageColumns:
    """The messages with attributes and data extracted from the bodies.

    `extensions` are the extension attributes that the catalogue names; an event with any other is doubtful.
    """
    names = (*sorted(WELL_KNOWN), *sorted(extensions - WELL_KNOWN))
    kind = _event_type(names)
    events, decoded = decode_column(messages.payload, MAX_DEPTH, MAX_EVENT_BYTES, msgspec.json.Decoder(kind))
    events = list(map(or_blank, events, repeat(kind())))
    bodies = messages.payload.fill_null(b"").to_pylist()
    columns = {name: list(map(attrgetter(name), events)) for name in (*names, *DATA)}
    doubtful = messages.doubtful | ~decoded | _unknown_members(bodies, columns)
    attributes = {}
    for name in names:
        text, odd = texts(columns[name])
        is_null = np.fromiter(map(is_, columns[name], repeat(None)), bool, len(events))
        attributes[name] = SlotColumn(text, odd & _is_set(columns[name]) & ~is_null)
        doubtful |= attributes[name].doubtful
    doubtful |= (
        ~sound_attributes(attributes, len(events))
        | _not_json(attributes["datacontenttype"])
        | _overridden(messages, attributes)
    )
    declared = attributes["datacontenttype"].text
    return replace(
        messages,
        mode="structured",
        attributes=attributes,
        data_content_type=SlotColumn(pc.fill_null(declared, "application/json"), doubtful),
        payload=pa.array([None if data is UNSET else bytes(data) for data in columns["data"]], pa.binary()),
        doubtful=doubtful | _is_set(columns["data_base64"]),
        json_values=True,
        _columns={},
        _made={},
    )


def or_blank(event: Any, blank: Any) -> Any:
    return blank if event is None else event


@lru_cache(maxsize=64)
def _event_type(names: tuple[str, ...]) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = [(name, TEXT if name in WELL_KNOWN else EXTENSION, UNSET) for name in names]
    fields += [("data", Raw | msgspec.UnsetType, UNSET), ("data_base64", TEXT, UNSET)]
    return msgspec.defstruct("Event", fields)


def _unknown_members(bodies: Sequence[bytes], columns: dict[str, list[Any]]) -> Any:
    """A mask of the bodies with unknown or duplicate members: their number of members, without those inside the data,
    differs from the number decoded."""
    inside = [bytes(data) if data is not UNSET else b"" for data in columns["data"]]
    whole, nested = count_members(list(bodies)), count_members(inside)
    decoded = np.sum([_is_set(values) for values in columns.values()], axis=0)
    return (whole.counts - nested.counts != decoded) | whole.doubtful | nested.doubtful


def _is_set(values: Sequence[Any]) -> Any:
    return ~np.fromiter(map(is_, values, repeat(UNSET)), bool, len(values))


def _overridden(messages: MessageColumns, attributes: dict[str, SlotColumn]) -> Any:
    """A mask of the messages whose headers contradict the event; the reference reports it, and the event wins."""
    overridden = np.zeros(len(messages), bool)
    for name, outside in messages.attributes.items():
        inside = attributes.get(name) or absent(len(messages))
        if name != "datacontenttype":
            differs = outside.present & ~mask_of(pc.equal(outside.text, inside.text))
            overridden |= differs & inside.present if messages.protocol in UNPREFIXED else differs
    return overridden


def _not_json(content_type: SlotColumn) -> Any:
    """A mask of the rows whose data content type is not JSON; their data is a string that must be unwrapped."""
    encoded = content_type.text.dictionary_encode()
    other = np.array([False, *(not is_json(text) for text in encoded.dictionary.to_pylist())])
    return other[codes_of(encoded)]
