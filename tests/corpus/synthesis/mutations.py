"""Messages that went wrong, or only look odd: one function for each kind of change.

A mutation takes a capture record (or an event of a plain file, as a record of its own) and gives the changed record, or
None where it does not apply. What should become of it is not said here: both engines must say the same, and the tests
over real events say what.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from synthesis import texts
from synthesis.dice import Dice
from synthesis.messages import BATCH, PAYLOAD_MEMBERS, STRUCTURED, Message, Record

Change = Callable[[Record, Dice], Record | None]
CHANGES: dict[str, Change] = {}
LINE_CHANGES: dict[str, Callable[[bytes, Dice], bytes]] = {}
EVENT_MEMBER = "payload"  # an event of a plain file, wrapped so that changes find it where MQTT has it


def mutate(message: Message, dice: Dice, names: tuple[str, ...] | None = None) -> Message:
    """The message with one to three changes that apply, drawn at random or named."""
    record = {EVENT_MEMBER: message.line.decode()} if message.is_event_file else message.record
    done: list[str] = []
    for name in names or dice.choices(list(CHANGES), k=dice.choice((1, 1, 1, 2, 3))):
        changed = _apply(CHANGES[name], record, dice)
        if changed is not None:
            record = changed
            done.append(name)
    line = _raw(record[EVENT_MEMBER]) if message.is_event_file else _dumps(record)
    if names is None and (not done or dice.random() < 0.15):
        name = dice.choice(list(LINE_CHANGES))
        line = LINE_CHANGES[name](line or b" ", dice)
        done.append(name)
    return replace(message, line=line.replace(b"\n", b" ").replace(b"\r", b" "), mutations=(*message.mutations, *done))


def _apply(change: Change, record: Record, dice: Dice) -> Record | None:
    try:
        return change(json.loads(json.dumps(record)), dice)
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        return None  # an earlier change broke what this one would have changed


def _dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def change(function: Change) -> Change:
    CHANGES[function.__name__.replace("_", "-")] = function
    return function


def line_change(function: Callable[[bytes, Dice], bytes]) -> Callable[[bytes, Dice], bytes]:
    LINE_CHANGES[function.__name__.replace("_", "-")] = function
    return function


# -- where things are -----------------------------------------------------------------------------------------------


def _member(record: Record) -> str:
    return PAYLOAD_MEMBERS.get(str(record.get("protocol")).upper(), EVENT_MEMBER)


def _raw(value: Any) -> bytes:
    """The bytes of a payload as a record has them; of what cannot be one, its text."""
    try:
        return base64.b64decode(value["base64"])
    except (TypeError, KeyError, ValueError):
        return str(value or "").encode("utf-8", "surrogatepass")


def _put(record: Record, raw: bytes) -> Record:
    try:
        record[_member(record)] = raw.decode()
    except UnicodeDecodeError:
        record[_member(record)] = {"base64": base64.b64encode(raw).decode()}
    return record


def _pairs(record: Record) -> list[list[Any]] | None:
    """The headers or properties of a record as pairs; changes are put back by `_set_pairs`."""
    for name in ("headers", "user_properties"):
        if isinstance(record.get(name), list) and record[name]:
            return [list(each) for each in record[name]]
    found = record.get("application-properties")
    return [list(each) for each in found.items()] if isinstance(found, dict) and found else None


def _set_pairs(record: Record, pairs: list[list[Any]]) -> Record:
    for name in ("headers", "user_properties"):
        if isinstance(record.get(name), list):
            record[name] = pairs
            return record
    record["application-properties"] = {str(name): value for name, value in pairs}
    return record


def _event(record: Record) -> Record | None:
    """The event in a structured record."""
    value = _json(record)
    return value if isinstance(value, dict) and "specversion" in value else None


def _json(record: Record) -> Any:
    try:
        return json.loads(_raw(record.get(_member(record))))
    except ValueError:
        return None


def _with_data(record: Record, data: Any) -> Record:
    """The record with other data, in whatever mode it is."""
    event = _event(record)
    if event is None:
        return _put(record, _dumps(data))
    event.pop("data_base64", None)
    return _put(record, _dumps(event | {"data": data}))


def _data(record: Record) -> Any:
    event = _event(record)
    return _json(record) if event is None else event.get("data")


def _attribute_pair(pairs: list[list[Any]], name: str) -> list[Any] | None:
    names = {name, f"ce-{name}", f"ce_{name}", f"cloudevents_{name}", f"cloudevents:{name}"}
    return next((pair for pair in pairs if str(pair[0]).lower() in names), None)


def _set_attribute(record: Record, name: str, value: Any) -> Record | None:
    """An attribute set to a value, in binary or structured mode."""
    pairs = _pairs(record)
    pair = _attribute_pair(pairs, name) if pairs else None
    if pair is not None and pairs is not None:
        pair[1] = value
        return _set_pairs(record, pairs)
    event = _event(record)
    return None if event is None else _put(record, _dumps(event | {name: value}))


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all members and items in a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, each in children for place in ((*at, key), *_places(each, (*at, key)))]


def _changed(value: Any, place: tuple[Any, ...], make: Callable[[Any], Any]) -> Any:
    """A copy with the value at one place made anew; `_GONE` takes it away."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for step in place[:-1]:
        holder = holder[step]
    made = make(holder[place[-1]])
    if made is _GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = made
    return copy


_GONE = object()


def _in_data(make: Callable[[Any, Dice], Any], applies: Callable[[Any], bool] = lambda _: True) -> Change:
    """A change of one member of the data."""

    def changed(record: Record, dice: Dice) -> Record | None:
        data = _data(record)
        places = [place for place in _places(data) if applies(_at(data, place))]
        if not places:
            return None
        return _with_data(record, _changed(data, dice.choice(places), lambda old: make(old, dice)))

    return changed


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


# -- attributes and headers -----------------------------------------------------------------------------------------


@change
def drop_header(record: Record, dice: Dice) -> Record | None:
    pairs = _pairs(record)
    if pairs:
        del pairs[dice.randrange(len(pairs))]
        return _set_pairs(record, pairs)
    event = _event(record)
    if event:
        event.pop(dice.choice(list(event)))
        return _put(record, _dumps(event))
    return None


@change
def change_type(record: Record, dice: Dice) -> Record | None:
    return _set_attribute(record, "type", dice.choice(("other.type", texts.word(dice), "")))


@change
def wrong_specversion(record: Record, dice: Dice) -> Record | None:
    return _set_attribute(record, "specversion", dice.choice(("0.3", "1", "1.0 ", "2.0")))


@change
def odd_attribute(record: Record, dice: Dice) -> Record | None:
    """A value that is hardly a text: controls, noncharacters, escapes, spaces around it."""
    name = dice.choice(("id", "source", "subject", "type", "time", "dataschema"))
    odd = (
        "a\u0007b",
        "x\ufdd0",
        "\U0001f600\U0001fffe",
        " padded ",
        "%C0%A0",
        "%e2%82%ac",
        '"quoted"',
        "50%",
        "a\tb",
        "é",
        "",
    )
    return _set_attribute(record, name, dice.choice(odd))


@change
def odd_time(record: Record, dice: Dice) -> Record | None:
    odd = (
        "2026-02-29T00:00:00Z", "2026-01-01T23:59:60Z", "2026-01-01t00:00:00z", "2026-01-01T00:00:00", "yesterday",
        "2026-01-01T00:00:00.123456789Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00+24:00", "0001-01-01T00:00:00+00:01", "2024-02-29T12:00:00.10Z",
    )  # fmt: skip
    return _set_attribute(record, "time", dice.choice(odd))


@change
def uri_escapes(record: Record, dice: Dice) -> Record | None:
    value = dice.choice(
        ("/a%2Fb", "/%41", "https://h/a b", "https://h/ü", "/a/b/c?d#e", "urn:x:%zz", "https://h/%C3%BC")
    )
    return _set_attribute(record, dice.choice(("source", "subject", "dataschema")), value)


@change
def repeat_header(record: Record, dice: Dice) -> Record | None:
    pairs = _pairs(record)
    if not pairs or "application-properties" in record:
        return None
    name, value = dice.choice(pairs)
    pairs.insert(dice.randint(0, len(pairs)), [name, dice.choice((value, f"{value}x", "", "a, b"))])
    return _set_pairs(record, pairs)


@change
def recase_header(record: Record, dice: Dice) -> Record | None:
    pairs = _pairs(record)
    if not pairs:
        return None
    pair = dice.choice(pairs)
    pair[0] = dice.choice((pair[0].upper(), pair[0].title(), pair[0].lower()))
    return _set_pairs(record, pairs)


@change
def odd_header(record: Record, dice: Dice) -> Record | None:
    pairs = _pairs(record)
    if not pairs:
        return None
    pair = dice.choice(pairs)
    pair[1] = dice.choice((
        None, "", " x ", "ü", "a%20b", "%ff", {"base64": "/w=="}, {"base64": "YQ=="}, f"{pair[1]}, b", f"x,{pair[1]}",
        '"a,b"', f"{pair[1]} ", f"{pair[1]}\n", str(pair[1]).upper(),
    ))  # fmt: skip
    return _set_pairs(record, pairs)


@change
def more_headers(record: Record, dice: Dice) -> Record | None:
    pairs = _pairs(record)
    if pairs is None:
        return None
    names = ("ce-extra", "ce_extra", "cloudEvents:extra", "cloudEvents_extra", "extra", "ce-Extra", "ce_x-y", "ce-", "ce-data",
             "traceparent", "ce-datacontenttype", "ce_datacontenttype", "datacontenttype", "cloudEvents:datacontenttype",
             "Content-Type", "content-type", "ce-specversion", "ce_id", "id", "cloudEvents:id", "cloudEvents_id")  # fmt: skip
    pairs.append([dice.choice(names), dice.choice(("1", "x y", "application/json", "a%41", "text/plain", "1.0"))])
    return _set_pairs(record, pairs)


@change
def content_type(record: Record, dice: Dice) -> Record | None:
    value = dice.choice((
        "Application/JSON; CharSet=UTF-8", "text/plain", "application/json;charset=utf-8", "application/xml", "nonsense",
        "", " application/json ", STRUCTURED, f"{STRUCTURED}; charset=utf-8", STRUCTURED.upper(), BATCH, "application/cloudevents",
        "application/cloudevents+avro", "application/json; a=\"b;c\"", None,
    ))  # fmt: skip
    if isinstance(record.get("properties"), dict):
        holder, name = record["properties"], "content_type" if "topic" in record else "content-type"
        holder[name] = value
        if value is None:
            del holder[name]
        return record
    pairs = [pair for pair in _pairs(record) or [] if pair[0].lower() != "content-type"]
    if "protocol" not in record or "headers" not in record:
        return _set_attribute(record, "datacontenttype", value)
    return _set_pairs(record, pairs if value is None else [*pairs, ["content-type", value]])


# -- protocol slots -------------------------------------------------------------------------------------------------

ADDRESSES = ("topic", "subject", "target", "key", "reply-to")


@change
def template_segment(record: Record, dice: Dice) -> Record | None:
    """A segment more, or one less, or an empty one, where templates have their say."""
    names = [name for name in ADDRESSES if isinstance(record.get(name), str)]
    texts_ = ("/extra", ".extra", "/", "//", "?a=b", "#f", "%2F", "+", "*", "ü", "\u0000", " ")
    if names and dice.random() < 0.7:
        name = dice.choice(names)
        cut = record[name].rpartition("/")[0] or "/"
        record[name] = dice.choice((record[name] + dice.choice(texts_), cut, ""))
        return record
    for name in dice.sample(("source", "subject"), 2):
        value = _attribute(record, name)
        if isinstance(value, str):
            return _set_attribute(record, name, value + dice.choice(texts_))
    return None


def _attribute(record: Record, name: str) -> Any:
    pairs = _pairs(record)
    pair = _attribute_pair(pairs, name) if pairs else None
    return pair[1] if pair is not None else (_event(record) or {}).get(name)


@change
def placeholder_conflict(record: Record, dice: Dice) -> Record | None:
    """One segment of one slot becomes another word: the placeholder there differs from the same one elsewhere."""
    names = [name for name in ADDRESSES if isinstance(record.get(name), str) and record[name]]
    if names and dice.random() < 0.6:
        name = dice.choice(names)
        record[name] = _other_segment(record[name], dice)
        return record
    pairs = _pairs(record)
    held = [pair for pair in pairs or [] if isinstance(pair[1], str)]
    if pairs and held:
        pair = dice.choice(held)
        pair[1] = _other_segment(pair[1], dice)
        return _set_pairs(record, pairs)
    return None


def _other_segment(text: str, dice: Dice) -> str:
    separator = "." if "/" not in text and "." in text else "/"
    parts = text.split(separator)
    parts[dice.randrange(len(parts))] = dice.choice((texts.word(dice), "", "a%2Fb", "ü"))
    return separator.join(parts)


@change
def no_address(record: Record, dice: Dice) -> Record | None:
    names = [name for name in (*ADDRESSES, "method") if name in record]
    if not names:
        return None
    record[dice.choice(names)] = None
    return record


@change
def odd_key(record: Record, dice: Dice) -> Record | None:
    if record.get("protocol") != "KAFKA":
        return None
    record["key"] = dice.choice((None, "", {"base64": "/w=="}, {"base64": "YQ=="}, "ü", 5, "a/b"))
    return record


@change
def http_request(record: Record, dice: Dice) -> Record | None:
    if record.get("protocol") != "HTTP":
        return None
    made = dice.choice((
        {"target": "https://host/hook?a=1"}, {"target": "*"}, {"target": "/a%2fb/%41?x=%20"}, {"method": "put"},
        {"method": None, "status": 200}, {"status": 204}, {"target": None}, {"target": "/a#b"}, {"method": "post"},
    ))  # fmt: skip
    return record | made


@change
def transport(record: Record, dice: Dice) -> Record | None:
    """What changes from hop to hop and is not compared."""
    return record | dice.choice((
        {"qos": 2}, {"retain": True}, {"qos": 3}, {"header": {"delivery-count": 3, "ttl": {"uint": 5}}}, {"partition": 7},
        {"offset": 2**63 - 1}, {"timestamp": "2026-01-01T00:00:00Z"}, {"footer": {"x": [1, 2]}}, {"partition": -1},
        {"delivery-annotations": {"a": {"map": {"b": 1}}}}, {"message-annotations": {"x-opt-partition-key": "p"}},
    ))  # fmt: skip


@change
def mqtt_properties(record: Record, dice: Dice) -> Record | None:
    if record.get("protocol") != "MQTT/5.0" or not isinstance(record.get("properties", {}), dict):
        return None
    record["properties"] = {**(record.get("properties") or {}), **dice.choice((
        {"correlation_data": {"base64": "AAE="}}, {"correlation_data": "x"}, {"payload_format": 0}, {"payload_format": 2},
        {"response_topic": "a/b"}, {"response_topic": ""}, {"message_expiry_interval": 2**32}, {"strange": 1},
        {"content_type": None},
    ))}  # fmt: skip
    return record


@change
def amqp_typed(record: Record, dice: Dice) -> Record | None:
    """Values in AMQP's own types."""
    if record.get("protocol") != "AMQP/1.0":
        return None
    sections = [name for name in ("application-properties", "properties", "message-annotations") if record.get(name)]
    section = record[dice.choice(sections)] if sections else record.setdefault("application-properties", {})
    name = dice.choice([*section, "cloudEvents:time", "cloudEvents_n", "message-id", "user-id"])
    section[name] = dice.choice((
        5, True, None, 1.5, {"long": 5}, {"ulong": 2**64 - 1}, {"boolean": True}, {"symbol": "a"}, {"string": section.get(name)},
        {"timestamp": "2026-01-01T00:00:00Z"}, {"uuid": "12345678-1234-1234-1234-123456789abc"}, {"binary": "AAE="},
        {"symbol": section.get(name)}, {"list": [1]}, {"map": {"a": 1}}, {"int": 2**31}, {"char": "x"}, [1, 2], {"a": 1, "b": 2},
        {"null": None}, "5", "true", {"double": 1}, {"timestamp": "2026-01-01T00:00:00.123456789+01:00"}, 2**70,
    ))  # fmt: skip
    return record


@change
def amqp_separators(record: Record, dice: Dice) -> Record | None:
    pairs = _pairs(record)
    if record.get("protocol") != "AMQP/1.0" or not pairs:
        return None
    every = dice.random() < 0.5
    for pair in pairs if every else [dice.choice(pairs)]:
        pair[0] = pair[0].replace("cloudEvents_", "cloudEvents:")
    return _set_pairs(record, pairs)


@change
def amqp_body(record: Record, dice: Dice) -> Record | None:
    if record.get("protocol") != "AMQP/1.0":
        return None
    record["body-section"] = dice.choice(("data", "amqp-value", "amqp-sequence", None))
    return record


@change
def borrow(record: Record, dice: Dice) -> Record | None:
    """One text of the record stands where another stood."""
    held = [place for place in _places(record) if isinstance(_at(record, place), str) and place[0] != "protocol"]
    if len(held) < 2:
        return None
    from_, to = dice.sample(held, 2)
    return _changed(record, to, lambda _: _at(record, from_))


# -- the record -----------------------------------------------------------------------------------------------------


@change
def endpoint(record: Record, dice: Dice) -> Record | None:
    return record | {"endpoint": dice.choice(("/endpoints/none", "", 5, None, "none", "/endpoints/a/messages/b"))}


@change
def received(record: Record, dice: Dice) -> Record | None:
    return record | {"received": dice.choice((
        "2026-01-01T00:00:00Z", "2026-01-01T23:59:60Z", "0000-01-01T00:00:00Z", "2026-01-01t00:00:00.5z", "2026-02-30T00:00:00Z",
        "2026-01-01T00:00:00.1234567Z", "9999-12-31T23:59:59-10:00", "now", None, 5, "0001-01-01T00:00:00+14:00",
    ))}  # fmt: skip


@change
def protocol(record: Record, dice: Dice) -> Record | None:
    return record | {
        "protocol": dice.choice(("kafka", "HTTP", "MQTT/5.0", "MQTT", "mqtt/3.1.1", "NATS", "", None, "SMTP"))
    }


@change
def unknown_member(record: Record, dice: Dice) -> Record | None:
    return record | {dice.choice(("note", "Topic", "headers ", "")): dice.choice((1, None, {"base64": "AA=="}, []))}


@change
def wrong_member(record: Record, dice: Dice) -> Record | None:
    name = dice.choice(list(record))
    return record | {
        name: dice.choice((5, True, [], {}, None, "x", [["a"]], {"base64": "?"}, [["a", "b", "c"]], [[1, "a"]]))
    }


@change
def null_member(record: Record, dice: Dice) -> Record | None:
    return record | {dice.choice((*record, "received", "endpoint", "key", "reply-to", "headers")): None}


# -- payloads -------------------------------------------------------------------------------------------------------

NUMBERS = (
    1.0,
    1e2,
    -0.0,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    0.1,
    1e-7,
    1e300,
    9007199254740993,
    -1,
    128,
    5e-324,
)
change_in_payload: dict[str, Change] = {
    "payload-drop": _in_data(lambda _, __: _GONE),
    "payload-null": _in_data(lambda _, __: None),
    "payload-retype": _in_data(lambda old, dice: dice.choice((str(old), [old], {"value": old}, True, 5, "x", 1.5))),
    "payload-number": _in_data(
        lambda _, dice: dice.choice(NUMBERS), lambda old: isinstance(old, int | float) and not isinstance(old, bool)
    ),
    "payload-number-anywhere": _in_data(lambda _, dice: dice.choice(NUMBERS)),
    "payload-text": _in_data(
        lambda old, dice: dice.choice((
            old + "é", "", f" {old}", old.upper(), old + "\u0000", "2026-02-30", "-0", "007", "99999999999999999999", "1.0",
            "2026-01-01T00:00:00.1234567Z", "2026-01-01T23:59:60Z", "2026-01-01T00:00:00", "null", "AA", "\ud7ff",
        )),
        lambda old: isinstance(old, str),
    ),
    "payload-deep": _in_data(lambda old, dice: _nested(old, dice.choice((3, 60, 198, 199, 200, 250)))),
}  # fmt: skip
CHANGES.update(change_in_payload)


def _nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@change
def payload_extra(record: Record, dice: Dice) -> Record | None:
    data = _data(record)
    if not isinstance(data, dict):
        return None
    name = dice.choice(("extra", "_rest", "value", "", "ü", "$schema", texts.word(dice)))
    return _with_data(record, data | {name: dice.choice((1, None, "x", {"a": [1, None]}, [], 10**30))})


@change
def payload_bytes(record: Record, dice: Dice) -> Record | None:
    """Bytes that are no JSON, or not only, or not quite."""
    raw = _raw(record.get(_member(record)))
    cut = dice.randint(0, max(0, len(raw) - 1))
    return _put(record, dice.choice((
        b"", b"null", b"[]", b"{}", b"5", b'"text"', b"\xff\xfe", raw[:cut], raw[:-1], raw + b"}", raw + b" \t", b" " + raw,
        raw + b"\x00", b"\xef\xbb\xbf" + raw, b"\xef\xbb\xbf\xef\xbb\xbf" + raw, raw + raw, raw.replace(b"{", b"{ ", 1),
        raw.replace(b'"', b'"\xff', 1), b"[" + raw + b"]", raw.replace(b":", b" : "), raw.replace(b",", b",,", 1),
        b"NaN", b'{"a":NaN}', b'{"a":1e999}', raw.replace(b"e", b"\\u0065", 3), b"\\ud800".join((b'{"a":"', b'"}')),
        b'{"a":' + b"9" * 5000 + b"}", raw + b"\x0b", b"//c\n" + raw, raw.replace(b"}", b",}", 1),
    )))  # fmt: skip


@change
def payload_duplicates(record: Record, dice: Dice) -> Record | None:
    """A member twice: in data the last counts, in a structured event it is malformed."""
    raw = _raw(record.get(_member(record)))
    names = [name for name, *rest in map(tuple, _places(_json(record))) if not rest and isinstance(name, str)]
    if not raw.lstrip().startswith(b"{") or not names:
        return None
    name = _dumps(dice.choice(names))
    again = dice.choice((b"null", b"1", b'"x"', b"{}"))
    where = dice.choice(("first", "last", "inside"))
    if where == "first":
        return _put(record, raw.replace(b"{", b"{" + name + b":" + again + b",", 1))
    if where == "inside" and raw.count(b"{") > 1:
        head, _, rest = raw.rpartition(b"{")
        return _put(record, head + b'{"a":1,"a":2' + (b"" if rest.lstrip()[:1] == b"}" else b",") + rest)
    return _put(record, raw.rstrip().removesuffix(b"}") + b"," + name + b":" + again + b"}")


@change
def payload_coded(record: Record, dice: Dice) -> Record | None:
    """Base64 where a text would do."""
    raw = _raw(record.get(_member(record)))
    record[_member(record)] = {"base64": base64.b64encode(raw).decode()}
    return record


@change
def no_payload(record: Record, dice: Dice) -> Record | None:
    record[_member(record)] = dice.choice((None, ""))
    return record


# -- structured events ----------------------------------------------------------------------------------------------


@change
def event_members(record: Record, dice: Dice) -> Record | None:
    event = _event(record)
    if event is None:
        return None
    data = base64.b64encode(_dumps(event.get("data"))).decode()
    without = {name: each for name, each in event.items() if name not in ("data", "data_base64")}
    return _put(record, _dumps(dice.choice((
        event | {"undeclared": "x"}, event | {"undeclared": 5}, event | {"undeclared": None}, event | {"undeclared": True},
        event | {"Upper": "x"}, event | {"with-dash": "x"}, event | {"undeclared": {"a": 1}}, event | {"data_base64": data},
        without | {"data_base64": data}, without | {"data_base64": "?"}, without | {"data_base64": None}, without,
        event | {"data": None}, event | {"subject": None}, event | {"id": 5}, event | {"time": 5}, event | {"source": None},
        event | {"datacontenttype": "text/plain"}, event | {"datacontenttype": "text/plain", "data": "plain text"},
        event | {"datacontenttype": None}, event | {"datacontenttype": 5}, event | {"datacontenttype": "Application/JSON"},
        event | {"datacontenttype": "application/vnd.x+json"}, event | {"specversion": None}, event | {"type": ""},
        event | {"datacontenttype": "application/xml", "data": "<a/>"}, event | {"undeclared": 2**40}, event | {"dataschema": ""},
        event | {"data": "a text"}, event | {"data": 5}, event | {"data": [1]}, event | {"undeclared": 1.5},
    ))))  # fmt: skip


@change
def batch(record: Record, dice: Dice) -> Record | None:
    event = _event(record)
    value = event if event is not None else _json(record)
    if record.get("protocol") not in ("HTTP", None) or value is None:
        return None
    events = value if isinstance(value, list) else [value]
    broken = dice.choice(
        ([], [{}], [5], [{"specversion": "1.0"}], [None], events, ["x"], [{**events[0], "id": 7}] if events else [])
    )
    if "headers" in record:
        record["headers"] = [pair for pair in record["headers"] if pair[0] != "content-type"] + [
            ["content-type", BATCH]
        ]
    return _put(record, _dumps(dice.choice(([*events, *broken], [*broken, *events], broken))))


# -- the line -------------------------------------------------------------------------------------------------------


@line_change
def truncated(line: bytes, dice: Dice) -> bytes:
    return line[: dice.randint(1, max(1, len(line) - 1))]


@line_change
def blanks(line: bytes, dice: Dice) -> bytes:
    return dice.choice(
        (b" " + line + b"\t", line.replace(b'":', b'" : ', 3), line.replace(b",", b" , ", 3), line + b" ")
    )


@line_change
def bom(line: bytes, dice: Dice) -> bytes:
    return b"\xef\xbb\xbf" * dice.choice((1, 1, 2)) + line


@line_change
def escaped(line: bytes, dice: Dice) -> bytes:
    return dice.choice(
        (
            line.replace(b"protocol", b"\\u0070rotocol", 1),
            line.replace(b"a", b"\\u0061", 2),
            line.replace(b"/", b"\\/", 3),
        )
    )


@line_change
def repeated_member(line: bytes, dice: Dice) -> bytes:
    again = dice.choice(
        (
            b'"protocol":"KAFKA",',
            b'"received":null,',
            b'"endpoint":null,"endpoint":null,',
            b'"headers":[],',
            b'"note":1,"note":1,',
        )
    )
    return line.replace(b"{", b"{" + again, 1)


@line_change
def trailing(line: bytes, dice: Dice) -> bytes:
    return line + dice.choice((b"}", b"x", b" {}", b"\x00", b","))


@line_change
def broken_bytes(line: bytes, dice: Dice) -> bytes:
    place = dice.randrange(len(line))
    return line[:place] + dice.choice((b"\xff", b"\x00", b"\\", b'"', b"\xc3")) + line[place + 1 :]


@line_change
def lone_surrogate(line: bytes, dice: Dice) -> bytes:
    place = line.rfind(b'":"')
    return line[: place + 3] + b"\\ud800" + line[place + 3 :]


@line_change
def other_value(line: bytes, dice: Dice) -> bytes:
    return dice.choice((b"[]", b"{}", b"5", b"null", b'"x"', b"[" + line + b"]", b"[]]", b'{"protocol":{}}'))
