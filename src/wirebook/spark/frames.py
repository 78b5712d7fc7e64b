"""Messages as columns: many records of one protocol, taken apart at once.

What the bindings do for one message (`wirebook.bindings`), these do for a whole batch, and only for messages without
surprises: a row about which a column cannot be sure is `doubtful`, and the reference reads it again.

Spec: docs/semantics.md#cloudevents-over-each-protocol; docs/semantics.md D24-D34.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from operator import attrgetter, is_, itemgetter
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.jsonevent import MANDATORY, MEDIA_TYPE, is_attribute_name
from wirebook.bindings.received import CLOUDEVENTS
from wirebook.bindings.wire import (
    AmqpMessage,
    AnyMessage,
    Base64,
    HttpMessage,
    KafkaRecord,
    Mqtt3Publish,
    Mqtt5Publish,
    NatsMessage,
)
from wirebook.message.slots import BARE, ENVELOPE, entry_name, family

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
T = TypeVar("T")

ENVELOPED: Final = "application/cloudevents"
# Printable ASCII: what every check on texts lets pass. Any other byte makes a column look twice.
FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E
UNPRINTABLE: Final = r"[\x00-\x1f\x7f-\x{9f}\x{fdd0}-\x{fdef}\x{fffe}\x{ffff}]|[^\x00-\x{ffff}]"
# Types of AMQP whose values are texts.
TEXTUAL: Final = ("string", "symbol", "timestamp", "uuid")
# An RFC 3339 time up to its fraction, on a day that exists, in years that no offset takes beyond Python's and Arrow's.
_DAY = r"(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
_LEAP_YEAR = r"([12][0-9](0[48]|[2468][048]|[13579][26])|1[26]00|2[048]00)"
SECOND: Final = rf"^([12][0-9]{{3}}-({_DAY})|{_LEAP_YEAR}-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
OFFSET: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"


def mask_of(array: pa.Array | pa.ChunkedArray) -> Mask:
    """A boolean Arrow array as a numpy mask; null is False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), bool)


def texts(values: Sequence[Any]) -> tuple[pa.StringArray, Mask]:
    """Python values as a column of texts, and where a value is no text (None and bytes: null in the column)."""
    is_text = np.fromiter(map(is_, map(type, values), repeat(str)), bool, len(values))
    if is_text.all():
        return pa.array(values, pa.string()), ~is_text
    chosen = np.array([None, *values], dtype=object)[1:]
    chosen[~is_text] = None
    return pa.array(chosen, pa.string()), ~is_text


@dataclass(frozen=True, slots=True)
class Column:
    """A slot of every message: its text, null where it is absent, and where the column is not to be trusted."""

    text: pa.StringArray
    doubtful: Mask

    @property
    def present(self) -> Mask:
        return mask_of(self.text.is_valid())

    def take(self, rows: Rows) -> Column:
        return Column(self.text.take(pa.array(rows)), self.doubtful[rows])

    def slice(self, start: int, stop: int) -> Column:
        return Column(self.text.slice(start, stop - start), self.doubtful[start:stop])


def absent(length: int) -> Column:
    return Column(pa.nulls(length, pa.string()), np.zeros(length, bool))


class Pairs:
    """Named values that may repeat (headers, properties) of many messages, one column for each name asked for.

    `fold` gives a name as it compares. Cost: a few C-level passes over all pairs, then one for each name.
    """

    def __init__(
        self, length: int, rows: Rows, names: list[str], values: list[Any], fold: Callable[[str], str]
    ) -> None:
        self.length = length
        self._rows = rows
        encoded = pa.array(names, pa.string()).dictionary_encode()
        self._codes = encoded.indices.to_numpy(zero_copy_only=False)
        self.names: dict[str, list[int]] = {}
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            self.names.setdefault(fold(name), []).append(code)
        self._values, self._odd = texts(values)
        self._columns: dict[str, Column] = {}

    @classmethod
    def of_lists(cls, lists: Sequence[list[tuple[str, Any]] | None], fold: Callable[[str], str]) -> Pairs:
        """From lists of (name, value), None for none."""
        rows, kept = _owners(lists)
        pairs = list(chain.from_iterable(kept))
        return cls(len(lists), rows, list(map(itemgetter(0), pairs)), list(map(itemgetter(1), pairs)), fold)

    @classmethod
    def of_dicts(cls, dicts: Sequence[dict[str, Any] | None]) -> Pairs:
        """From maps, None for none; a value of a type that is a text (``{"timestamp": ...}``) is that text."""
        rows, kept = _owners(dicts)
        values = _untyped(list(chain.from_iterable(map(dict.values, kept))))
        return cls(len(dicts), rows, list(chain.from_iterable(kept)), values, str)

    @property
    def owning(self) -> Mask:
        """Which messages have any."""
        return np.bincount(self._rows, minlength=self.length) > 0

    def column(self, name: str) -> Column:
        """The first value of a name; doubtful where it repeats, or is no text."""
        if name not in self._columns:
            self._columns[name] = self._pivot(self.names.get(name, ()))
        return self._columns[name]

    def _pivot(self, codes: Sequence[int]) -> Column:
        if not codes:
            return absent(self.length)
        chosen = np.flatnonzero(np.isin(self._codes, codes) if len(codes) > 1 else self._codes == codes[0])
        owners = self._rows[chosen]
        place = np.full(self.length, -1, np.int64)
        place[owners[::-1]] = chosen[::-1]
        doubtful = np.bincount(owners, minlength=self.length) > 1
        found = place >= 0
        doubtful[found] |= self._odd[place[found]]
        return Column(self._values.take(pa.array(place, mask=~found)), doubtful)


def _owners(sequences: Sequence[Any]) -> tuple[Rows, list[Any]]:
    """For each item of the sequences the number of its owner; and the sequences that are neither None nor empty."""
    kept = list(filter(None, sequences))
    filled = np.flatnonzero(np.fromiter(map(bool, sequences), bool, len(sequences)))
    counts = np.fromiter(map(len, kept), np.int64, len(kept))
    return np.repeat(filled, counts), kept


def _untyped(values: list[Any]) -> list[Any]:
    """AMQP values, those that name their type and are texts as these texts."""
    typed = np.flatnonzero(np.fromiter(map(is_, map(type, values), repeat(dict)), bool, len(values)))
    if not len(typed):
        return values
    array = np.array([None, *values], dtype=object)[1:]
    typed = typed[np.fromiter(map(len, array[typed]), np.int64, len(typed)) == 1]
    names = list(chain.from_iterable(array[typed]))
    inner = np.array([None, *chain.from_iterable(map(dict.values, array[typed]))], dtype=object)[1:]
    chosen = np.isin(names, TEXTUAL) & np.fromiter(map(is_, map(type, inner), repeat(str)), bool, len(inner))
    array[typed[chosen]] = inner[chosen]
    return list(array)


@dataclass(slots=True)
class Parts:
    """Records of one protocol, taken apart by their binding: see `wirebook.bindings.cloudevents.Parts`.

    Shape: `attributes` by name; `bare` and `sections` are asked for as definitions need them.
    """

    content_type: Column
    attributes: dict[str, Column]
    body: list[Any]
    doubtful: Mask
    bare: Mapping[str, Callable[[], Column]] = field(default_factory=dict)
    sections: Mapping[str, Pairs] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.body)

    def column(self, section: str, name: str) -> Column | None:
        """A protocol slot's column; None for a slot that is not kept as one."""
        if section == BARE:
            make = self.bare.get(name)
            return make() if make else None
        pairs = self.sections.get(section)
        return pairs.column(name) if pairs is not None else None


@dataclass(slots=True)
class Frame:
    """Messages of one protocol, of one kind and mode, as columns.

    Shape: `rows` are places in the batch, `places` those in `parts`; a column has one value for each row. `payload` is
    null where there is no data; with `json_values` it holds the JSON text of a structured event's data.
    `is_reinterpreted`: only the context says that they are events (MQTT 3.1.1, bare NATS).
    """

    protocol: str
    is_cloudevent: bool
    mode: str | None
    rows: Rows
    places: Rows
    parts: Parts
    content_type: Column
    data_content_type: Column
    attributes: dict[str, Column]
    payload: pa.BinaryArray
    doubtful: Mask
    json_values: bool = False
    is_reinterpreted: bool = False
    _columns: dict[tuple[str, str], Column | None] = field(default_factory=dict)
    _made: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shows_protocol(self) -> bool:
        """Can protocol slots be observed? Not of events from a plain file."""
        return self.protocol != CLOUDEVENTS

    def column(self, section: str, name: str) -> Column | None:
        """A slot's column, made once; None for a slot that is not kept as one."""
        slot = (section, name)
        if slot not in self._columns:
            self._columns[slot] = self._column(section, name)
        return self._columns[slot]

    def _column(self, section: str, name: str) -> Column | None:
        if name == "datacontenttype":
            return self.data_content_type
        if section == ENVELOPE:
            return self.attributes.get(name) or absent(len(self))
        if name == "wire-content-type":
            return self.content_type
        whole = self.parts.column(section, name)
        return None if whole is None else whole.take(self.places)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, made once for the frame."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def take(self, order: Rows) -> Frame:
        """The frame with these rows, in this order."""
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


# -- taking records apart -------------------------------------------------------------------------------------------


def _http(records: Sequence[HttpMessage]) -> Parts:
    headers = Pairs.of_lists(list(map(attrgetter("headers"), records)), partial(entry_name, "HTTP", "headers"))
    attributes, doubtful = _prefixed(headers, ("ce-",))
    doubtful |= attributes.pop("datacontenttype", absent(len(records))).present
    doubtful |= _any((not_header_safe(column.text) for column in attributes.values()), len(records))
    content_type = _trimmed(headers.column("content-type"))
    bodies = list(map(attrgetter("body"), records))
    return Parts(content_type, attributes, bodies, doubtful, _Bare(records, _HTTP_SLOTS), {"headers": headers})


def _nats(records: Sequence[NatsMessage]) -> Parts:
    headers = Pairs.of_lists(list(map(attrgetter("headers"), records)), partial(entry_name, "NATS", "headers"))
    attributes, doubtful = _prefixed(headers, ("ce-",))
    doubtful |= _any((not_header_safe(column.text) for column in attributes.values()), len(records))
    content_type = _trimmed(headers.column("content-type"))
    bodies = list(map(attrgetter("data"), records))
    return Parts(content_type, attributes, bodies, doubtful, _Bare(records, _NATS_SLOTS), {"headers": headers})


def _kafka(records: Sequence[KafkaRecord]) -> Parts:
    headers = Pairs.of_lists(list(map(attrgetter("headers"), records)), partial(entry_name, "KAFKA", "headers"))
    attributes, doubtful = _prefixed(headers, ("ce_",))
    doubtful |= attributes.pop("datacontenttype", absent(len(records))).present
    content_type = _trimmed(headers.column("content-type"))
    bodies = list(map(attrgetter("value"), records))
    bare = _Bare(records, {"topic": "topic", "key": "key"})
    return Parts(content_type, attributes, bodies, doubtful, bare, {"headers": headers})


def _mqtt_3(records: Sequence[Mqtt3Publish]) -> Parts:
    nothing = absent(len(records))
    bodies, no_doubt = list(map(attrgetter("payload"), records)), np.zeros(len(records), bool)
    return Parts(nothing, {}, bodies, no_doubt, _Bare(records, {"topic_name": "topic"}))


def _mqtt_5(records: Sequence[Mqtt5Publish]) -> Parts:
    pairs = Pairs.of_lists(list(map(attrgetter("user_properties"), records)), str)
    attributes = {name: pairs.column(name) for name in pairs.names if is_attribute_name(name)}
    doubtful = _any((column.doubtful for column in attributes.values()), len(records))
    doubtful |= attributes.pop("datacontenttype", absent(len(records))).present
    bare = _Bare(records, {"topic_name": "topic"}, "properties", ("content_type", "response_topic"))
    bodies = list(map(attrgetter("payload"), records))
    return Parts(bare["content_type"](), attributes, bodies, doubtful, bare, {"user_properties": pairs})


def _amqp(records: Sequence[AmqpMessage]) -> Parts:
    fields = {
        "properties": "properties",
        "application-properties": "application_properties",
        "message-annotations": "message_annotations",
    }
    sections = {name: Pairs.of_dicts(list(map(attrgetter(attr), records))) for name, attr in fields.items()}
    attributes, doubtful = _prefixed(sections["application-properties"], ("cloudEvents:", "cloudEvents_"))
    doubtful |= attributes.pop("datacontenttype", absent(len(records))).present
    bodies = list(map(attrgetter("body"), records))
    return Parts(sections["properties"].column("content-type"), attributes, bodies, doubtful, {}, sections)


TAKE_APART: Final[dict[type[AnyMessage], Callable[[Any], Parts]]] = {
    HttpMessage: _http,
    KafkaRecord: _kafka,
    Mqtt3Publish: _mqtt_3,
    Mqtt5Publish: _mqtt_5,
    AmqpMessage: _amqp,
    NatsMessage: _nats,
}
# Protocols whose bare messages may be structured events, and only the context can tell.
HIDING: Final = ("MQTT/3.1.1", "NATS")
# Bindings where a body of zero bytes is no data.
EMPTY_IS_NONE: Final = frozenset({"HTTP", "MQTT", "NATS"})
_HTTP_SLOTS: Final = {"method": "method", "path": "target"}
_NATS_SLOTS: Final = {"subject": "subject", "reply-to": "reply_to"}


class _Bare(dict[str, Callable[[], Column]]):
    """Bare slots by name, each read from the records when asked for, once.

    `fields` maps a slot to the record's field; `nested` are fields of the object in the field `within`.
    """

    def __init__(
        self,
        records: Sequence[AnyMessage],
        fields: Mapping[str, str],
        within: str | None = None,
        nested: Iterable[str] = (),
    ) -> None:
        made: dict[str, Column] = {}

        def column(name: str, read: Callable[[], Column]) -> Column:
            if name not in made:
                made[name] = read()
            return made[name]

        for slot, field_ in fields.items():
            self[slot] = partial(column, slot, partial(_field, records, field_, slot))
        for slot in nested:
            self[slot] = partial(column, slot, partial(_nested_field, records, within or "", slot))


def _field(records: Sequence[AnyMessage], field_: str, slot: str) -> Column:
    text, odd = texts(list(map(attrgetter(field_), records)))
    doubtful = odd & ~np.fromiter(map(is_, map(attrgetter(field_), records), repeat(None)), bool, len(records))
    if slot == "path":  # only an origin-form target without escapes is its path as it compares
        plain = pc.match_substring_regex(text, r"^/[^%#]*$")
        doubtful |= ~mask_of(plain) & mask_of(text.is_valid())
        text = pc.list_element(pc.split_pattern(text, "?", max_splits=1), 0)
    if slot == "method":
        text = pc.utf8_upper(text)
    return Column(text, doubtful)


def _nested_field(records: Sequence[AnyMessage], within: str, name: str) -> Column:
    holders = list(map(attrgetter(within), records))
    there = np.flatnonzero(~np.fromiter(map(is_, holders, repeat(None)), bool, len(holders)))
    values = np.full(len(records), None, dtype=object)
    values[there] = list(map(attrgetter(name), np.array([None, *holders], dtype=object)[1:][there]))
    text, odd = texts(values.tolist())
    is_none = np.fromiter(map(is_, values, repeat(None)), bool, len(values))
    return Column(text, odd & ~is_none)


def _prefixed(pairs: Pairs, prefixes: tuple[str, ...]) -> tuple[dict[str, Column], Mask]:
    """The attributes whose pairs have a prefix; doubtful where a name is no attribute's, or two spell one."""
    attributes: dict[str, Column] = {}
    doubtful = np.zeros(pairs.length, bool)
    for name in pairs.names:
        prefix = next((each for each in prefixes if name.startswith(each)), None)
        if prefix is None:
            continue
        attribute, column = name[len(prefix) :], pairs.column(name)
        doubtful |= column.doubtful
        if not is_attribute_name(attribute):
            doubtful |= column.present
        elif attribute in attributes:
            doubtful |= column.present & attributes[attribute].present
            attributes[attribute] = Column(pc.coalesce(attributes[attribute].text, column.text), doubtful)
        else:
            attributes[attribute] = column
    return attributes, doubtful


def _trimmed(column: Column) -> Column:
    return Column(pc.utf8_trim(column.text, " \t"), column.doubtful)


def _any(masks: Iterable[Mask], length: int) -> Mask:
    return np.asarray(np.logical_or.reduce([np.zeros(length, bool), *masks]))


def not_header_safe(text: pa.StringArray) -> Mask:
    """Where a header's value would have to be decoded first: an escape, a quote, a blank around it, or what is not
    printable ASCII."""
    if is_plain(text, b'%" '):
        return np.zeros(len(text), bool)
    return mask_of(pc.match_substring_regex(text, r'[^\x20-\x7e]|[%"]|^ | $'))


def is_plain(text: pa.StringArray, but: bytes = b"") -> bool:
    """Has the whole column only printable ASCII, without the characters of `but`? Cost: one pass over its bytes."""
    data = text.buffers()[2]
    if data is None:
        return True
    offsets = np.frombuffer(text.buffers()[1], np.int32)
    raw = np.frombuffer(data, np.uint8)[offsets[text.offset] : offsets[text.offset + len(text)]]
    if raw.size and (raw.min() < FIRST_PRINTABLE or raw.max() > LAST_PRINTABLE):
        return False
    return not any((raw == character).any() for character in but)


# -- frames ---------------------------------------------------------------------------------------------------------


def apart(records: Sequence[AnyMessage | None]) -> Iterator[Frame]:
    """Frames of the records of a batch; what is in no frame, or doubtful in it, the reference reads."""
    classes = np.array([None, *map(type, records)], dtype=object)[1:]
    everything = np.array([None, *records], dtype=object)[1:]
    for cls, take_apart in TAKE_APART.items():
        rows = np.flatnonzero(classes == cls)
        if len(rows):
            chosen = everything[rows].tolist()
            yield from _split(cls.protocol, take_apart(chosen), rows)


def _split(protocol: str, parts: Parts, rows: Rows) -> Iterator[Frame]:
    """One frame for each kind: events in binary mode, structured events, native messages."""
    enveloped, structured = _enveloped(parts.content_type)
    some, sound = _claims(protocol, parts)
    if (binary := ~enveloped & sound).any():
        yield _events(protocol, parts, rows).take(np.flatnonzero(binary))
    if (native := ~enveloped & ~some).any():
        natives = _natives(protocol, parts, rows).take(np.flatnonzero(native))
        yield natives
        if protocol in HIDING:
            yield from _hidden(natives)
    if structured.any():  # attributes and data are still in the body: see `spark.events`
        yield replace(_events(protocol, parts, rows).take(np.flatnonzero(structured)), mode="structured")


def _enveloped(content_type: Column) -> tuple[Mask, Mask]:
    """Where the content type says CloudEvents, and where it is the one that is read here."""
    encoded = content_type.text.dictionary_encode()
    kinds = [0] + [_envelope_kind(text) for text in encoded.dictionary.to_pylist()]
    codes = pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(zero_copy_only=False)
    kind = np.array(kinds)[codes]
    return kind > 0, kind == 1


def _envelope_kind(content_type: str) -> int:
    media_type = content_type.partition(";")[0].strip().lower()
    return 0 if not media_type.startswith(ENVELOPED) else 1 if media_type == MEDIA_TYPE else 2


def _claims(protocol: str, parts: Parts) -> tuple[Mask, Mask]:
    """Where a message claims to be an event in binary mode, and where it is a sound one."""
    length = len(parts)
    columns = {name: parts.attributes.get(name, absent(length)) for name in MANDATORY}
    present = np.sum([column.present for column in columns.values()], axis=0)
    some = present > 0
    if family(protocol) == "MQTT":
        some = columns["specversion"].present & (present > 1)
    sound = (present == len(MANDATORY)) & mask_of(pc.equal(columns["specversion"].text, "1.0"))
    for name in ("id", "source", "type"):
        sound &= mask_of(pc.not_equal(columns[name].text, ""))
    return some, sound


def _events(protocol: str, parts: Parts, rows: Rows) -> Frame:
    """The records as events in binary mode."""
    data_type = parts.content_type
    if protocol == "NATS":
        data_type = parts.attributes.get("datacontenttype", absent(len(parts)))
    return Frame(
        protocol=protocol,
        is_cloudevent=True,
        mode="binary",
        rows=rows,
        places=np.arange(len(rows)),
        parts=parts,
        content_type=parts.content_type,
        data_content_type=data_type,
        attributes={**parts.attributes, "datacontenttype": data_type},
        payload=_payloads(parts.body, protocol),
        doubtful=parts.doubtful | parts.content_type.doubtful,
    )


def _natives(protocol: str, parts: Parts, rows: Rows) -> Frame:
    """Messages that are no events; where only the context could tell (MQTT 3.1.1, bare NATS), one is doubtful."""
    payload = _payloads(parts.body, protocol)
    doubtful = parts.content_type.doubtful.copy()
    for trace in (b"specversion", b"\\u") if protocol in HIDING else ():
        doubtful |= mask_of(pc.match_substring(payload, trace))
    return Frame(
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


def _hidden(natives: Frame) -> Iterator[Frame]:
    """What is doubtful among native messages, as the structured events that it may be."""
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
        content_type=Column(pa.repeat(pa.scalar(MEDIA_TYPE), count), np.zeros(count, bool)),
        doubtful=np.zeros(count, bool),
        _columns={},
        _made={},
    )


def _payloads(bodies: Sequence[Any], protocol: str) -> pa.BinaryArray:
    """Bodies as bytes, null for none."""
    array = np.array([None, *bodies], dtype=object)[1:]
    coded = np.fromiter(map(is_, map(type, bodies), repeat(Base64)), bool, len(bodies))
    if coded.any():
        array[coded] = list(map(attrgetter("base64"), array[coded]))
    if family(protocol) in EMPTY_IS_NONE:
        array[~np.fromiter(map(bool, array), bool, len(array))] = None
    return pa.array(array, pa.binary())
