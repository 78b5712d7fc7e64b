"""Random entities that are valid by a model, and the same with a fault."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from fuzzing import junk
from synthesis import texts
from synthesis.dice import Dice

IDS = ("a", "b", "A", "c1", "v-2", "1", "2", "10")
ODD_IDS = (
    *IDS,
    "é",
    "",
    "null",
    "request",
    "x" * 129,
    "a/b",
    "a b",
    "-a",
    "@",
    "a~:@.",
    "meta",
    "versions",
    "a$details",
    "%41",
    "..",
)
SERVERS = frozenset(
    {"self", "shortself", "xid", "epoch", "metaurl", "isdefault", "model", "modelsource", "capabilities"}
)
DOCUMENTS = (
    '{"type": "object"}',
    '"record"',
    "{",
    "",
    'syntax = "proto3"; message M { string a = 1; }',
    "<xs:schema/>",
    "x",
)
FORMATS = (
    "jsonschema/draft-07",
    "JsonSchema",
    "avro",
    "Avro/1.11",
    "protobuf/3",
    "xsd/1.1",
    "jsonstructure",
    "none",
    "",
    "x/y",
)
XIDS = ("/", "/dirs/a/files/b", "/dirs", "/dirs/a", "/dirs/a/files/b/versions/1", "/x/y", "/schemagroups/a", "")
Full = Mapping[str, Any]


def identifier(dice: Dice) -> str:
    return dice.choice(ODD_IDS if dice.random() < 0.08 else IDS)


def scalar(full: Full, dice: Dice) -> Any:
    """A value of a type."""
    allowed = full.get("enum")
    if allowed and dice.random() < 0.9:
        return dice.choice(list(allowed))
    kind = full["type"]
    if kind == "boolean":
        return dice.random() < 0.5
    if kind in ("integer", "uinteger"):
        return dice.choice((0, 1, 7, 2**31, 2**63, 10**30)) * (1 if kind == "uinteger" else dice.choice((1, -1)))
    if kind == "decimal":
        return dice.choice((0, 1.5, -2.25, 1e300, 7))
    if kind == "timestamp":
        return texts.instant(dice)
    if kind in ("xid", "xidtype"):
        return dice.choice(XIDS if dice.random() < 0.1 else XIDS[:2] if kind == "xid" else XIDS[:3:2])
    if kind.startswith(("uri", "url")):
        absolute = {"uriabsolute": True, "urlabsolute": True, "urirelative": False, "urlrelative": False}.get(kind)
        return texts.uri(dice) if absolute or (absolute is None and dice.random() < 0.5) else "a/" + texts.word(dice)
    return texts.text(dice)


def value(full: Full, dice: Dice, depth: int = 0) -> Any:
    kind = full["type"]
    if kind == "any":
        return dice.choice(junk.VALUES[:50]) if depth < 4 else 1
    if kind == "array":
        return [value(full["item"], dice, depth + 1) for _ in range(dice.choice((0, 1, 3)))]
    if kind == "map":
        return {texts.word(dice).lower(): value(full["item"], dice, depth + 1) for _ in range(dice.choice((0, 1, 3)))}
    if kind == "object":
        return members(full.get("attributes", {}), dice, depth + 1)
    return scalar(full, dice)


def members(attributes: Full, dice: Dice, depth: int = 0) -> dict[str, Any]:
    """Some members of an object, and what the values of others bring with them."""
    share, chosen = dice.choice((0.1, 0.4)), {}
    waiting = list(attributes.items())
    while waiting:
        name, full = waiting.pop(0)
        if name == "*":
            if dice.random() < 0.1:
                chosen[texts.word(dice).lower()] = value(full, dice, depth)
            continue
        keys = list(full.get("ifvalues", ()))
        if full.get("required") or dice.random() < share:
            chosen[name] = dice.choice(keys) if keys and dice.random() < 0.8 else value(full, dice, depth)
            brought = full.get("ifvalues", {}).get(str(chosen[name]), {})
            waiting += brought.get("siblingattributes", {}).items()
    return chosen


# -- entities -------------------------------------------------------------------------------------------------------


def _own(attributes: Full, dice: Dice, collections: set[str]) -> dict[str, Any]:
    ends = {f"{plural}{end}" for plural in collections for end in ("", "url", "count")}
    ids = {name for name in attributes if name.endswith("id") and attributes[name].get("immutable")}
    skipped = SERVERS | ends | ids | {"meta", "versions", "constraints", "ancestorid", "readonly", "format", "xref"}
    skipped |= {"defaultversionid", "defaultversionurl", "compatibility", "createdat", "modifiedat", "contenttype"}
    attributes_ = members({name: attribute for name, attribute in attributes.items() if name not in skipped}, dice)
    if dice.random() < 0.03:
        attributes_["epoch"] = dice.choice((0, 1, 2, 3, 10**25, -1, "1"))
    if dice.random() < 0.1:
        attributes_[dice.choice(("createdat", "modifiedat"))] = texts.instant(dice)
    return attributes_


def group(full: Full, dice: Dice) -> dict[str, Any]:
    resources = full.get("resources", {})
    entity = _own(full["attributes"], dice, set(resources))
    for plural, resource_type in resources.items():
        if dice.random() < 0.3:
            entity[plural] = {identifier(dice): resource(resource_type, dice) for _ in range(dice.choice((0, 1, 2)))}
    if dice.random() < 0.05:
        entity["constraints"] = dice.choice(
            ({"files.name": {"default": "x"}}, {"messages.envelope": {"equals": "envelope"}}, {"x": 1})
        )
    return entity


def resource(full: Full, dice: Dice) -> dict[str, Any]:
    if dice.random() < 0.08:
        return {
            "meta": {
                "xref": dice.choice(("/dirs/a/files/a", "/dirs/b/files/b", "/dirs/a/datas/a", "/x", "", "/dirs/a"))
            }
        }
    entity = version(full, dice)
    if dice.random() < 0.4:
        entity["meta"] = meta(full, dice)
    if dice.random() < 0.5:
        entity["versions"] = {identifier(dice): version(full, dice) for _ in range(dice.choice((0, 1, 2, 5)))}
    return entity


def version(full: Full, dice: Dice) -> dict[str, Any]:
    entity = _own(full["attributes"], dice, set())
    singular = full["singular"]
    for name in (singular, f"{singular}url", f"{singular}base64"):
        entity.pop(name, None)
    if full["hasdocument"] and dice.random() < 0.7:
        entity |= document(singular, dice)
    if dice.random() < 0.3:
        entity["ancestorid"] = dice.choice((*IDS, "request"))
    if dice.random() < 0.3:
        entity["format"] = dice.choice(FORMATS)
    if dice.random() < 0.1:
        entity["versionid"] = identifier(dice)
    return entity


def document(singular: str, dice: Dice) -> dict[str, Any]:
    text = dice.choice(DOCUMENTS)
    kind = dice.randrange(4)
    if kind == 0:
        return {f"{singular}base64": base64.b64encode(text.encode()).decode()}
    if kind == 1:
        return {
            f"{singular}url": dice.choice(
                ("https://example.com/x", "ftp://x", "a b", "/x\u00e9")[: dice.choice((1, 4))]
            )
        }
    return {
        singular: text if kind == 2 else {"type": "object"},
        "contenttype": "x" if dice.random() < 0.05 else dice.choice(("application/json", "text/plain")),
    }


def meta(full: Full, dice: Dice) -> dict[str, Any]:
    entity = _own(full["metaattributes"], dice, set())
    if dice.random() < 0.4:
        entity["compatibility"] = (
            "x" if dice.random() < 0.05 else dice.choice(("backward", "forward", "full", "FULL_TRANSITIVE"))
        )
    if dice.random() < 0.4:
        entity |= {"defaultversionid": dice.choice((*IDS, None)), "defaultversionsticky": dice.random() < 0.7}
    return entity
