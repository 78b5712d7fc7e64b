"""Splits the records of one protocol into attributes, slots and data, as `wirebook.bindings` does for one record.

Only plain messages are handled. A row that a column cannot decide is `doubtful`.

Spec: docs/semantics.md#cloudevents-over-each-protocol; docs/semantics.md D24-D34.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.attributes import is_attribute_name
from wirebook.definitions.compile.slots import BARE, entry_name
from wirebook.landing.columns.records import RecordFields
from wirebook.landing.columns.slot_columns import Mask, RepeatedColumns, SlotColumn, absent, any_of, is_plain, mask_of

Makers = dict[str, Callable[[], SlotColumn]]


@dataclass(slots=True)
class WireColumns:
    """Records of one protocol, split by its binding; compare `wirebook.bindings.cloudevents.Parts`.

    Shape: `attributes` by name. `data` is null where there is none. `bare` maps each bare slot to a function that makes
    its column; `sections` has the pairs of all other slots.
    """

    content_type: SlotColumn
    attributes: dict[str, SlotColumn]
    data: pa.BinaryArray
    doubtful: Mask
    bare: Makers = field(default_factory=dict)
    sections: Mapping[str, RepeatedColumns] = field(default_factory=dict)
    _made: dict[str, SlotColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def column(self, section: str, name: str) -> SlotColumn | None:
        """The column of a protocol slot; None for a slot without a column."""
        if section != BARE:
            pairs = self.sections.get(section)
            return pairs.column(name) if pairs is not None else None
        if name not in self._made and name in self.bare:
            self._made[name] = self.bare[name]()
        return self._made.get(name)


def _http(fields: RecordFields) -> WireColumns:
    bare: Makers = {"method": partial(_method, fields), "path": partial(_path, fields)}
    return _without_content_type(_without_escapes(_headed(fields, "HTTP", "ce-", "body", bare)))


def _nats(fields: RecordFields) -> WireColumns:
    return _without_escapes(_headed(fields, "NATS", "ce-", "data", _bare(fields, "subject", "reply-to")))


def _kafka(fields: RecordFields) -> WireColumns:
    return _without_content_type(_headed(fields, "KAFKA", "ce_", "value", _bare(fields, "topic", "key")))


def _mqtt_3(fields: RecordFields) -> WireColumns:
    bare: Makers = {"topic_name": partial(fields.text, "topic")}
    return WireColumns(absent(len(fields)), {}, fields.data("payload"), np.zeros(len(fields), bool), bare)


def _mqtt_5(fields: RecordFields) -> WireColumns:
    pairs = fields.pairs("user_properties", str)
    attributes = {name: pairs.column(name) for name in pairs.names if is_attribute_name(name)}
    doubtful = any_of((column.doubtful for column in attributes.values()), len(fields))
    content_type = fields.nested("properties", "content_type")
    bare: Makers = {
        "topic_name": partial(fields.text, "topic"),
        "content_type": lambda: content_type,
        "response_topic": partial(fields.nested, "properties", "response_topic"),
    }
    sections = {"user_properties": pairs}
    return _without_content_type(
        WireColumns(content_type, attributes, fields.data("payload"), doubtful, bare, sections)
    )


def _amqp(fields: RecordFields) -> WireColumns:
    sections = {name: fields.section(name) for name in ("properties", "application-properties", "message-annotations")}
    attributes, doubtful = _prefixed(sections["application-properties"], ("cloudEvents:", "cloudEvents_"))
    content_type = sections["properties"].column("content-type")
    return _without_content_type(WireColumns(content_type, attributes, fields.data("body"), doubtful, {}, sections))


WIRE_COLUMNS: Final[dict[str, Callable[[RecordFields], WireColumns]]] = {
    "HTTP": _http,
    "KAFKA": _kafka,
    "MQTT/3.1.1": _mqtt_3,
    "MQTT/5.0": _mqtt_5,
    "AMQP/1.0": _amqp,
    "NATS": _nats,
}


def _headed(fields: RecordFields, protocol: str, prefix: str, body: str, bare: Makers) -> WireColumns:
    """Records of a protocol whose headers carry the attributes and the content type."""
    headers = fields.pairs("headers", partial(entry_name, protocol, "headers"))
    attributes, doubtful = _prefixed(headers, (prefix,))
    declared = headers.column("content-type")
    content_type = SlotColumn(pc.utf8_trim(declared.text, " \t"), declared.doubtful)
    if protocol != "KAFKA":  # D30
        headers = headers.trimmed()
    return WireColumns(content_type, attributes, fields.data(body), doubtful, bare, {"headers": headers})


def _without_escapes(parts: WireColumns) -> WireColumns:
    """Mark messages as doubtful if a header value must be decoded first."""
    parts.doubtful |= any_of((not_header_safe(column.text) for column in parts.attributes.values()), len(parts))
    return parts


def _without_content_type(parts: WireColumns) -> WireColumns:
    """Mark messages as doubtful if they also carry the content type as an attribute."""
    parts.doubtful |= parts.attributes.pop("datacontenttype", absent(len(parts))).present
    return parts


def _bare(fields: RecordFields, *names: str) -> Makers:
    """Slots whose values are plain strings."""
    return {name: partial(fields.text, name) for name in names}


def _method(fields: RecordFields) -> SlotColumn:
    column = fields.text("method")
    return SlotColumn(pc.utf8_upper(column.text), column.doubtful)


def _path(fields: RecordFields) -> SlotColumn:
    """The path of an origin-form target; doubtful for other forms and for targets with escapes."""
    target = fields.text("target")
    plain = mask_of(pc.match_substring_regex(target.text, r"^/[^%#]*$"))
    path = pc.list_element(pc.split_pattern(target.text, "?", max_splits=1), 0)
    return SlotColumn(path, target.doubtful | (~plain & target.present))


def _prefixed(pairs: RepeatedColumns, prefixes: tuple[str, ...]) -> tuple[dict[str, SlotColumn], Mask]:
    """The attributes whose names begin with one of the prefixes. A message is doubtful if such a name is not a valid
    attribute name, or if both prefixes occur."""
    attributes: dict[str, SlotColumn] = {}
    doubtful = np.zeros(pairs.length, bool)
    spelled = {prefix: np.zeros(pairs.length, bool) for prefix in prefixes}
    for name in pairs.names:
        prefix = next((candidate for candidate in prefixes if name.startswith(candidate)), None)
        if prefix is None:
            continue
        attribute, column = name[len(prefix) :], pairs.column(name)
        doubtful |= column.doubtful
        spelled[prefix] |= column.present
        if not is_attribute_name(attribute):
            doubtful |= column.present
        elif attribute in attributes:
            attributes[attribute] = SlotColumn(pc.coalesce(attributes[attribute].text, column.text), doubtful)
        else:
            attributes[attribute] = column
    return attributes, doubtful | (np.sum(list(spelled.values()), axis=0) > 1)


def not_header_safe(text: pa.StringArray) -> Mask:
    """A mask of the header values that must be decoded: those with an escape, a quote, surrounding blanks, or
    characters that are not printable ASCII."""
    if is_plain(text, b'%" '):
        return np.zeros(len(text), bool)
    return mask_of(pc.match_substring_regex(text, r'[^\x20-\x7e]|[%"]|^ | $'))
