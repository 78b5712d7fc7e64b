"""Changes of addresses, properties and the other members of a record."""

from __future__ import annotations

from synthesis import texts
from synthesis.changes import change
from synthesis.dice import Dice
from synthesis.messages import Record
from synthesis.records import attribute_in, changed_at, pairs_of, places_in, set_attribute, set_pairs, value_at
from wirebook.bindings.wire import BODY_SECTIONS

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
        value = attribute_in(record, name)
        if isinstance(value, str):
            return set_attribute(record, name, value + dice.choice(texts_))
    return None


@change
def placeholder_conflict(record: Record, dice: Dice) -> Record | None:
    """One segment of one slot becomes another word: the placeholder there differs from the same one elsewhere."""
    names = [name for name in ADDRESSES if isinstance(record.get(name), str) and record[name]]
    if names and dice.random() < 0.6:
        name = dice.choice(names)
        record[name] = _other_segment(record[name], dice)
        return record
    pairs = pairs_of(record)
    held = [pair for pair in pairs or [] if isinstance(pair[1], str)]
    if pairs and held:
        pair = dice.choice(held)
        pair[1] = _other_segment(pair[1], dice)
        return set_pairs(record, pairs)
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
    changed = dice.choice((
        {"target": "https://host/hook?a=1"}, {"target": "*"}, {"target": "/a%2fb/%41?x=%20"}, {"method": "put"},
        {"method": None, "status": 200}, {"status": 204}, {"target": None}, {"target": "/a#b"}, {"method": "post"},
    ))  # fmt: skip
    return record | changed


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
    pairs = pairs_of(record)
    if record.get("protocol") != "AMQP/1.0" or not pairs:
        return None
    every = dice.random() < 0.5
    for pair in pairs if every else [dice.choice(pairs)]:
        pair[0] = pair[0].replace("cloudEvents_", "cloudEvents:")
    return set_pairs(record, pairs)


@change
def amqp_body(record: Record, dice: Dice) -> Record | None:
    if record.get("protocol") != "AMQP/1.0":
        return None
    record["body-section"] = dice.choice((*BODY_SECTIONS, "amqp-sequence", None))
    return record


@change
def borrow(record: Record, dice: Dice) -> Record | None:
    """One text of the record stands where another stood."""
    held = [place for place in places_in(record) if isinstance(value_at(record, place), str) and place[0] != "protocol"]
    if len(held) < 2:
        return None
    from_, to = dice.sample(held, 2)
    return changed_at(record, to, lambda _: value_at(record, from_))


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
