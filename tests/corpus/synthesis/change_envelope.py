"""Changes of attributes, headers and structured events."""

from __future__ import annotations

import base64

from synthesis import texts
from synthesis.changes import change
from synthesis.dice import Dice
from synthesis.messages import BATCH, STRUCTURED, Record
from synthesis.records import dumps, event_in, json_in, pairs_of, put_payload, set_attribute, set_pairs


@change
def drop_header(record: Record, dice: Dice) -> Record | None:
    pairs = pairs_of(record)
    if pairs:
        del pairs[dice.randrange(len(pairs))]
        return set_pairs(record, pairs)
    event = event_in(record)
    if event:
        event.pop(dice.choice(list(event)))
        return put_payload(record, dumps(event))
    return None


@change
def change_type(record: Record, dice: Dice) -> Record | None:
    return set_attribute(record, "type", dice.choice(("other.type", texts.word(dice), "")))


@change
def wrong_specversion(record: Record, dice: Dice) -> Record | None:
    return set_attribute(record, "specversion", dice.choice(("0.3", "1", "1.0 ", "2.0")))


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
    return set_attribute(record, name, dice.choice(odd))


@change
def odd_time(record: Record, dice: Dice) -> Record | None:
    odd = (
        "2026-02-29T00:00:00Z", "2026-01-01T23:59:60Z", "2026-01-01t00:00:00z", "2026-01-01T00:00:00", "yesterday",
        "2026-01-01T00:00:00.123456789Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00+24:00", "0001-01-01T00:00:00+00:01", "2024-02-29T12:00:00.10Z",
    )  # fmt: skip
    return set_attribute(record, "time", dice.choice(odd))


@change
def uri_escapes(record: Record, dice: Dice) -> Record | None:
    value = dice.choice(
        ("/a%2Fb", "/%41", "https://h/a b", "https://h/ü", "/a/b/c?d#e", "urn:x:%zz", "https://h/%C3%BC")
    )
    return set_attribute(record, dice.choice(("source", "subject", "dataschema")), value)


@change
def repeat_header(record: Record, dice: Dice) -> Record | None:
    pairs = pairs_of(record)
    if not pairs or "application-properties" in record:
        return None
    name, value = dice.choice(pairs)
    pairs.insert(dice.randint(0, len(pairs)), [name, dice.choice((value, f"{value}x", "", "a, b"))])
    return set_pairs(record, pairs)


@change
def recase_header(record: Record, dice: Dice) -> Record | None:
    pairs = pairs_of(record)
    if not pairs:
        return None
    pair = dice.choice(pairs)
    pair[0] = dice.choice((pair[0].upper(), pair[0].title(), pair[0].lower()))
    return set_pairs(record, pairs)


@change
def odd_header(record: Record, dice: Dice) -> Record | None:
    pairs = pairs_of(record)
    if not pairs:
        return None
    pair = dice.choice(pairs)
    pair[1] = dice.choice((
        None, "", " x ", "ü", "a%20b", "%ff", {"base64": "/w=="}, {"base64": "YQ=="}, f"{pair[1]}, b", f"x,{pair[1]}",
        '"a,b"', f"{pair[1]} ", f"{pair[1]}\n", str(pair[1]).upper(),
    ))  # fmt: skip
    return set_pairs(record, pairs)


@change
def more_headers(record: Record, dice: Dice) -> Record | None:
    pairs = pairs_of(record)
    if pairs is None:
        return None
    names = ("ce-extra", "ce_extra", "cloudEvents:extra", "cloudEvents_extra", "extra", "ce-Extra", "ce_x-y", "ce-", "ce-data",
             "traceparent", "ce-datacontenttype", "ce_datacontenttype", "datacontenttype", "cloudEvents:datacontenttype",
             "Content-Type", "content-type", "ce-specversion", "ce_id", "id", "cloudEvents:id", "cloudEvents_id")  # fmt: skip
    pairs.append([dice.choice(names), dice.choice(("1", "x y", "application/json", "a%41", "text/plain", "1.0"))])
    return set_pairs(record, pairs)


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
    pairs = [pair for pair in pairs_of(record) or [] if pair[0].lower() != "content-type"]
    if "protocol" not in record or "headers" not in record:
        return set_attribute(record, "datacontenttype", value)
    return set_pairs(record, pairs if value is None else [*pairs, ["content-type", value]])


# -- structured events ----------------------------------------------------------------------------------------------


@change
def event_members(record: Record, dice: Dice) -> Record | None:
    event = event_in(record)
    if event is None:
        return None
    data = base64.b64encode(dumps(event.get("data"))).decode()
    without = {name: member for name, member in event.items() if name not in ("data", "data_base64")}
    return put_payload(record, dumps(dice.choice((
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
    event = event_in(record)
    value = event if event is not None else json_in(record)
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
    return put_payload(record, dumps(dice.choice(([*events, *broken], [*broken, *events], broken))))
