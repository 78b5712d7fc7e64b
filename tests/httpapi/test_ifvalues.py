"""Aspects of attributes that depend on values: `ifvalues`, `enum`, `target` and names of members."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.conftest import Client, serve
from wirebook.storage.database import Database

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
F = "/dirs/d/files/f"
PATHS = {"registry": "/", "group": "/dirs/d", "version": F, "meta": f"{F}/meta"}
Source = dict[str, Any]


def model(own: Source) -> Source:
    """A model with the same attributes at every level."""
    files = {"singular": "file", "hasdocument": False, "attributes": own, "metaattributes": own}
    return {
        "attributes": own,
        "groups": {"dirs": {"singular": "dir", "attributes": own, "resources": {"files": files}}},
    }


def required(default: Any = None, **aspects: Any) -> Source:
    return {**STRING, **aspects, "required": True, **({} if default is None else {"default": default})}


def brings(type_: str = "string", **sections: Source) -> Source:
    """An attribute with the siblings that its values bring."""
    return {"type": type_, "ifvalues": {key: {"siblingattributes": section} for key, section in sections.items()}}


MODEL: Source = {
    "x": brings(
        a={"y": INTEGER, "r": required()},
        b={"y": STRING, "d": required("dd"), "z": brings(q={"w": STRING})},
        c={"*": {"type": "any"}},
        e={},
    ),
    "n": brings("integer", **{"1": {"one": STRING}, "-5": {"minus": STRING}}),
    "t": brings("boolean", TRUE={"yes": STRING}, false={"no": STRING}),
    "f": brings("decimal", **{"1.5": {"half": STRING}, "2": {"two": STRING}}),
    "k": {**required("kk"), **brings(KK={"v": required("vv")})},
    "s": brings(a={"y": STRING, "own": STRING}),
    "o": {"type": "object", "attributes": {"x": brings(a={"r": required(), "i": required("ii")})}},
    "l": {"type": "array", "item": {"type": "object", "attributes": {"x": brings(a={"y": INTEGER})}}},
    "m": {"type": "map", "item": {"type": "object", "attributes": {"x": brings(a={"y": INTEGER})}}},
}
ALWAYS = {"k": "kk", "v": "vv"}


@pytest.fixture
def client(database: Database) -> Client:
    client = serve(database, model(MODEL))
    assert client.put(F, {}).status == 201
    return client


def own(entity: Source) -> Source:
    """What an entity has of the extensions, but for what it always has."""
    text = {"self", "xid", "epoch", "createdat", "modifiedat", "ancestorid", "isdefault", "readonly", "specversion"}
    ends = ("id", "url", "count", "sticky")
    return {name: member for name, member in entity.items() if name not in text and not name.endswith(ends)}


ACCEPTED: list[tuple[Source, Source]] = [
    ({}, {}),
    ({"x": "a", "y": 5, "r": "1"}, {}),
    ({"x": "A", "r": "1"}, {}),
    ({"x": "b", "y": "5"}, {"d": "dd"}),
    ({"x": "b", "d": "own"}, {}),
    ({"x": "b", "z": "Q", "w": "1"}, {"d": "dd"}),
    ({"x": "c", "anything": [1], "y": {"A": 1}}, {}),
    ({"x": "e"}, {}),
    ({"x": "other"}, {}),
    ({"x": ""}, {}),
    ({"n": 1, "one": "1"}, {}),
    ({"n": -5, "minus": "1"}, {}),
    ({"t": True, "yes": "1"}, {}),
    ({"t": False, "no": "1"}, {}),
    ({"f": 1.5, "half": "1"}, {}),
    ({"f": 2, "two": "1"}, {}),
    ({"s": "a", "y": "1", "own": "1"}, {}),
    ({"o": {"x": "A", "r": "1"}}, {"o": {"x": "A", "r": "1", "i": "ii"}}),
    ({"o": {}}, {}),
    ({"l": [{"x": "a", "y": 5}, {"x": "b"}, {}]}, {}),
    ({"m": {"one": {"x": "a", "y": 5}, "two": {}}}, {}),
]


@pytest.mark.parametrize("level", PATHS)
def test_c_mod_24_values_bring_attributes(client: Client, level: str) -> None:
    for attributes, more in ACCEPTED:
        reply = client.put(PATHS[level], attributes)
        assert reply.status == 200, (attributes, reply.body)
        assert own(reply.json) == {**ALWAYS, **attributes, **more}
        assert own(client.get(PATHS[level]).json) == {**ALWAYS, **attributes, **more}
        assert own(client.patch(PATHS[level], {}).json) == {**ALWAYS, **attributes, **more}


# -- what values may be -----------------------------------------------------------------------------------------------


def one(database: Database, **aspects: Any) -> Client:
    client = serve(database, model({"v": aspects}))
    client.put(F, {})
    return client


# -- what there is not ------------------------------------------------------------------------------------------------


def test_c_neg_01_no_other_way_to_guard_a_write(client: Client) -> None:
    """Beside the preconditions of HTTP, the epoch alone guards a write."""
    assert client.put("/dirs/d", {"name": "n"}, if_unmodified_since="x").status == 200
    assert client.put("/dirs/d", {"name": "n"}, if_match='"none"').status == 412
    wrong = client.put("/dirs/d", {"epoch": 99}, if_match="*")
    assert wrong.error == (400, "mismatched_epoch", "/dirs/d")
    assert client.delete("/dirs/d?epoch=99").error[:2] == (400, "mismatched_epoch")


# -- attributes of the text ---------------------------------------------------------------------------------------


def deciding(level: str, name: str, **aspects: Any) -> Source:
    """A model in which a value of an attribute of the text brings `extra`."""
    own = {name: {**brings(one={"extra": required("filled")}), **aspects}}
    files = {"singular": "file", "hasdocument": False, **({level: own} if level.endswith("ributes") else {})}
    dirs = {"singular": "dir", "resources": {"files": files}, **({"attributes": own} if level == "group" else {})}
    return {"groups": {"dirs": dirs}}


@pytest.mark.parametrize(
    ("level", "name", "aspects"),
    [
        ("group", "epoch", {"type": "uinteger", "required": True, "readonly": True}),
        ("group", "filescount", {"type": "uinteger", "required": True, "readonly": True}),
        ("attributes", "isdefault", {"type": "boolean", "required": True, "readonly": True, "default": False}),
        ("attributes", "ancestorid", {"required": True}),
        ("metaattributes", "xref", {"type": "url"}),
        ("metaattributes", "defaultversionid", {"required": True}),
        ("metaattributes", "defaultversionsticky", {"type": "boolean", "required": True, "default": False}),
    ],
)
def test_ifvalues_on_a_server_assigned_attribute_are_rejected(
    registry: Client, level: str, name: str, aspects: dict[str, Any]
) -> None:
    refused = registry.put("/modelsource", deciding(level, name, **aspects))
    assert refused.error == (400, "model_error", "/model")
    assert f".{name}.ifvalues is not allowed" in refused.json["args"]["error_detail"]
