"""The model language: what a model may say, and what the full model says then. Rows of the checklist by their ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.httpapi.conftest import Client, serve
from wirebook.core.model.builtin import builtin_model
from wirebook.storage.database import Database

STRING: dict[str, Any] = {"type": "string"}
Source = dict[str, Any]


def groups(**aspects: Any) -> Source:
    """A model of one Group type without Resources."""
    return {"groups": {"dirs": {"singular": "dir", **aspects}}}


def attribute(**aspects: Any) -> Source:
    """A model with an attribute of Groups."""
    return groups(attributes={"x": aspects})


def resources(**aspects: Any) -> Source:
    """A model with one Resource type."""
    return groups(resources={"files": {"singular": "file", **aspects}})


def version(**aspects: Any) -> Source:
    """A model with an attribute of Versions."""
    return resources(attributes={"x": aspects})


def siblings(**attributes: Any) -> dict[str, Any]:
    return {"type": "string", "ifvalues": {"a": {"siblingattributes": attributes}}}


def imports(*references: str, **local: Any) -> Source:
    """A model in which the Group type `dirs` imports from `boxes`."""
    boxes = {"singular": "box", "resources": {"files": {"singular": "file"}}}
    return {"groups": {"dirs": {"singular": "dir", "ximportresources": [*references], **local}, "boxes": boxes}}


@pytest.fixture
def empty(database: Database) -> Client:
    """A registry without a model."""
    return serve(database, {})


def model(client: Client, source: Any) -> Any:
    """The full model of a source."""
    reply = client.put("/modelsource", source)
    assert reply.status == 200, reply.body
    assert reply.json == source
    return client.get("/model").json


def fault(client: Client, source: Any) -> str:
    """The error of a source, which changes nothing."""
    before = [client.get(path).body for path in ("/?inline=model,modelsource", "/modelsource")]
    reply = client.put("/modelsource", source)
    assert [client.get(path).body for path in ("/?inline=model,modelsource", "/modelsource")] == before
    status, name, subject = reply.error
    assert (status, subject) == (400, "/model"), reply.body
    through_registry = client.patch("/", {"modelsource": source})
    assert through_registry.error == (400, name, "/model")
    return name


# -- the model and its source -------------------------------------------------------------------------------------


def test_aspects_that_say_nothing_are_not_in_the_full_model(empty: Client) -> None:
    said_nothing = {"enum": [], "required": False, "readonly": False, "default": None, "ifvalues": {}, "target": ""}
    assert model(empty, version(**STRING, **said_nothing))["groups"]["dirs"]["resources"]["files"]["attributes"][
        "x"
    ] == {"name": "x", "type": "string"}
    shown = model(empty, version(type="string", enum=["b", "a"], matchversions=True, description="d"))
    attribute = shown["groups"]["dirs"]["resources"]["files"]["attributes"]["x"]
    expected = {"name": "x", "type": "string", "description": "d", "matchversions": True, "enum": ["b", "a"]}
    assert json.dumps(attribute) == json.dumps(expected | {"strict": True})


# -- faults -------------------------------------------------------------------------------------------------------

NESTED = {"type": "object", "attributes": {"q": {"type": "string"}}}
FAULTS: list[tuple[str, Any, str]] = [
    ("C-MOD-06", attribute(type="string", name="y"), "model_error"),
    ("C-MOD-06", groups(plural="others"), "model_error"),
    ("C-MOD-06", resources(plural="others"), "model_error"),
    ("C-MOD-07", {"foo": 1}, "model_error"),
    ("C-MOD-07", {"icon": "http://h/i"}, "model_error"),
    ("C-MOD-07", groups(foo=1), "model_error"),
    ("C-MOD-07", resources(foo=1), "model_error"),
    ("C-MOD-07", attribute(type="string", foo=1), "model_error"),
    ("C-MOD-07", attribute(type="map", item={"type": "string", "name": "i"}), "model_error"),
    ("C-MOD-07", attribute(type="string", ifvalues={"a": {"siblings": {}}}), "model_error"),
    ("C-MOD-07", attribute(type="string", required="true"), "model_error"),
    ("C-MOD-07", resources(maxversions=-1), "model_error"),
    ("C-MOD-07", resources(maxversions="1"), "model_error"),
    ("C-MOD-07", resources(hasdocument="true"), "model_error"),
    ("C-MOD-07", {"labels": {"": "x"}}, "model_error"),
    ("C-MOD-07", {"groups": {"dirs": None}}, "model_error"),
    ("C-MOD-07", groups(resources={"files": None}), "model_error"),
    ("C-MOD-07", groups(attributes={"x": None}), "model_error"),
    ("C-MOD-07", {"groups": []}, "model_error"),
    ("C-MOD-08", attribute(type="String"), "model_error"),
    ("C-MOD-08", attribute(type="urireference"), "model_error"),
    ("C-MOD-08", attribute(description="no type"), "model_error"),
    ("C-MOD-08", attribute(type="map", item={"type": "text"}), "model_error"),
    ("C-MOD-09", attribute(type="array"), "model_error"),
    ("C-MOD-09", attribute(type="map"), "model_error"),
    ("C-MOD-09", attribute(type="map", item={}), "model_error"),
    ("C-MOD-09", attribute(type="map", item={"type": "array"}), "model_error"),
    ("C-MOD-09", attribute(type="string", item=STRING), "model_error"),
    ("C-MOD-09", attribute(type="array", item={"type": "object", "item": STRING}), "model_error"),
    ("C-MOD-10", attribute(type="map", item=STRING, attributes={}), "model_error"),
    ("C-MOD-10", attribute(type="string", attributes={"q": STRING}), "model_error"),
    ("C-MOD-10", attribute(type="map", item={"type": "string", "attributes": {"q": STRING}}), "model_error"),
    ("C-MOD-11", attribute(type="string", target="/dirs"), "model_error"),
    ("C-MOD-11", attribute(type="urlabsolute", target="/dirs"), "model_error"),
    ("C-MOD-11", attribute(type="xid", target="dirs"), "model_error"),
    ("C-MOD-11", attribute(type="xid", target="/"), "model_error"),
    ("C-MOD-11", attribute(type="xid", target="/dirs/files/meta"), "model_error"),
    ("C-MOD-11", attribute(type="xid", target="/nodirs"), "model_error"),
    ("C-MOD-11", attribute(type="map", item={"type": "string", "target": "/dirs"}), "model_error"),
    ("C-MOD-13", attribute(type="object", namecharset="loose"), "model_error"),
    ("C-MOD-13", attribute(type="string", namecharset="extended"), "model_error"),
    ("C-MOD-13", attribute(type="object", attributes={"a-b": STRING}), "invalid_attribute"),
    (
        "C-MOD-13",
        attribute(type="object", namecharset="extended", attributes={"A": STRING}),
        "invalid_attribute",
    ),
    ("C-MOD-15", attribute(type="any", enum=[1]), "model_error"),
    ("C-MOD-15", attribute(type="map", item=STRING, enum=["a"]), "model_error"),
    ("C-MOD-15", attribute(type="object", enum=[{}]), "model_error"),
    ("C-MOD-15", attribute(type="integer", enum=["1"]), "model_error"),
    ("C-MOD-15", attribute(type="boolean", enum=["true"]), "model_error"),
    ("C-MOD-15", attribute(type="string", enum=[None]), "model_error"),
    ("C-MOD-15", attribute(type="timestamp", enum=["today"]), "model_error"),
    ("C-MOD-17", {"attributes": {"*": {"type": "any", "required": True}}}, "model_error"),
    ("C-MOD-17", {"attributes": {"*": {"type": "any", "readonly": True}}}, "model_error"),
    ("C-MOD-18", attribute(type="string", immutable=True), "model_error"),
    ("C-MOD-18", attribute(type="object", attributes={"q": {"type": "string", "immutable": True}}), "model_error"),
    ("C-MOD-18", attribute(**siblings(q={"type": "string", "immutable": True})), "model_error"),
    ("C-MOD-18", groups(attributes={"name": {"type": "string", "immutable": True}}), "model_error"),
    ("C-MOD-19", attribute(type="string", default="a"), "model_required_true"),
    ("C-MOD-19", attribute(type="string", default="a", required=False), "model_required_true"),
    ("C-MOD-20", attribute(type="any", default="a", required=True), "model_scalar_default"),
    ("C-MOD-20", attribute(type="map", item=STRING, default={}), "model_scalar_default"),
    ("C-MOD-20", attribute(type="array", item=STRING, default=[], required=True), "model_scalar_default"),
    ("C-MOD-21", attribute(type="string", default="a", required=True, enum=["b"]), "model_error"),
    ("C-MOD-21", attribute(type="integer", default="a", required=True), "model_error"),
    ("C-MOD-21", attribute(type="uinteger", default=-1, required=True), "model_error"),
    ("C-MOD-23", attribute(type="string", matchversions=True), "model_error"),
    ("C-MOD-23", {"attributes": {"x": {"type": "string", "matchversions": True}}}, "model_error"),
    ("C-MOD-23", resources(metaattributes={"x": {"type": "string", "matchversions": True}}), "model_error"),
    ("C-MOD-23", version(type="any", matchversions=True), "model_error"),
    ("C-MOD-23", version(type="map", item=STRING, matchversions=True), "model_error"),
    ("C-MOD-23", version(**NESTED, matchversions=True), "model_error"),
    ("C-MOD-23", version(**siblings(q={"type": "string", "matchversions": True})), "model_error"),
    ("C-MOD-23", resources(attributes={"*": {"type": "string", "matchversions": True}}), "model_error"),
    (
        "C-MOD-23",
        version(type="array", item={"type": "object", "attributes": {"q": {**STRING, "matchversions": True}}}),
        "model_error",
    ),
    ("C-MOD-25", attribute(type="string", ifvalues={"^a": {"siblingattributes": {}}}), "model_error"),
    ("C-MOD-25", attribute(type="string", ifvalues={"": {"siblingattributes": {}}}), "model_error"),
    ("C-MOD-25", attribute(type="string", ifvalues={"a": {}, "A": {}}), "model_error"),
    ("C-MOD-25", attribute(type="string", enum=["a"], ifvalues={"b": {}}), "model_error"),
    ("C-MOD-25", attribute(type="any", ifvalues={"a": {}}), "model_error"),
    ("C-MOD-25", attribute(type="map", item=STRING, ifvalues={"a": {}}), "model_error"),
    ("C-MOD-25", {"attributes": {"*": {"type": "string", "ifvalues": {"a": {}}}}}, "model_error"),
    ("C-MOD-26", attribute(**siblings(x=STRING)), "model_error"),
    ("C-MOD-26", attribute(**siblings(name=STRING)), "model_error"),
    ("C-MOD-26", attribute(**siblings(dirid=STRING)), "model_error"),
    ("C-MOD-26", groups(attributes={"x": siblings(y=STRING), "y": STRING}), "model_error"),
    ("C-MOD-26", groups(attributes={"x": siblings(**{"*": STRING}), "*": {"type": "any"}}), "model_error"),
    ("C-MOD-26", attribute(**siblings(y=siblings(x=STRING))), "model_error"),
    ("C-MOD-26", attribute(**siblings(y=siblings(y=STRING))), "model_error"),
    ("C-MOD-26", version(**siblings(versions=STRING)), "model_error"),
    ("C-MOD-26", version(**siblings(fileurl=STRING)), "model_error"),
    ("C-MOD-26", groups(attributes={"x": siblings(filesurl=STRING)}, **resources()["groups"]["dirs"]), "model_error"),
    ("C-MOD-26", attribute(type="object", attributes={"x": siblings(y=STRING), "y": STRING}), "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": "dirs"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": "box"}, "boxes": {"singular": "box"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": "dir"}, "dir": {"singular": "di"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"d" * 58: {"singular": "d"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": "d" * 64}}}, "model_error"),
    ("C-MOD-28", {"groups": {"Dirs": {"singular": "dir"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"1dirs": {"singular": "dir"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"": {"singular": "dir"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": ""}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {}}}, "model_error"),
    ("C-MOD-28", {"groups": {"labels": {"singular": "label"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"model": {"singular": "modl"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"export": {"singular": "exprt"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": "x"}}}, "model_error"),
    ("C-MOD-28", {"groups": {"dirs": {"singular": "dir"}, "dirsurl": {"singular": "durl"}}}, "model_error"),
    ("C-MOD-28", {"attributes": {"dirs": STRING}, **groups()}, "model_error"),
    ("C-MOD-29", groups(resources={"fs": {"singular": "f"}, "gs": {"singular": "f"}}), "model_error"),
    ("C-MOD-29", groups(resources={"fs": {"singular": "fs"}}), "model_error"),
    ("C-MOD-29", groups(resources={"f" * 58: {"singular": "f"}}), "model_error"),
    ("C-MOD-29", groups(resources={"fs": {"singular": "f" * 58}}), "model_error"),
    ("C-MOD-29", groups(resources={"versions": {"singular": "vers"}}), "model_error"),
    ("C-MOD-29", groups(resources={"meta": {"singular": "met"}}), "model_error"),
    ("C-MOD-29", groups(resources={"labels": {"singular": "label"}}), "model_error"),
    ("C-MOD-29", groups(resources={"fs": {"singular": "version"}}), "model_error"),
    ("C-MOD-29", groups(resources={"fs": {"singular": "name"}}), "model_error"),
    ("C-MOD-33", resources(typemap={"a/b": "text"}), "model_error"),
    ("C-MOD-33", resources(typemap={"a/b": ""}), "model_error"),
    ("C-MOD-33", resources(typemap={"*/*": "json"}), "model_error"),
    ("C-MOD-33", resources(typemap={"": "json"}), "model_error"),
    ("C-MOD-34", resources(resourceattributes={"x": STRING}), "model_error"),
    ("C-MOD-34", resources(attributes={"meta": STRING}), "model_error"),
    ("C-MOD-34", resources(attributes={"versionscount": {"type": "uinteger"}}), "model_error"),
    ("C-MOD-34", resources(attributes={"fileurl": STRING}), "model_error"),
    ("C-MOD-35", resources(attributes={"name": {"type": "integer"}}), "model_error"),
    ("C-MOD-35", resources(metaattributes={"epoch": {"type": "uinteger", "readonly": True}}), "model_error"),
    ("C-MOD-35", groups(attributes={"createdat": {"type": "timestamp", "required": False}}), "model_error"),
    ("C-MOD-35", groups(attributes={"createdat": {"type": "timestamp"}}), "model_error"),
    ("C-MOD-35", groups(attributes={"self": {"type": "url", "required": True, "readonly": False}}), "model_error"),
    (
        "C-MOD-35",
        resources(metaattributes={"defaultversionsticky": {"type": "boolean", "required": True}}),
        "model_error",
    ),
    (
        "C-MOD-35",
        resources(metaattributes={"defaultversionsticky": {"required": True, "default": None}}),
        "model_error",
    ),
    ("C-MOD-35", groups(attributes={"labels": {"type": "map", "item": {"type": "integer"}}}), "model_error"),
    (
        "C-MOD-35",
        groups(attributes={"deprecated": {"type": "object", "attributes": {"removal": STRING}}}),
        "model_error",
    ),
    (
        "C-MOD-35",
        resources(metaattributes={"compatibility": {"type": "string", "enum": ["none"]}}),
        "model_error",
    ),
    ("C-MOD-35", resources(metaattributes={"compatibility": {"type": "string"}}), "model_error"),
    (
        "C-MOD-35",
        resources(metaattributes={"compatibility": {"enum": ["full"], "strict": False}}),
        "model_error",
    ),
    ("C-MOD-38", imports("/dirs/files"), "model_error"),
    ("C-MOD-38", imports("/nope/files"), "model_error"),
    ("C-MOD-38", imports("/boxes/nope"), "model_error"),
    ("C-MOD-38", imports("boxes/files"), "model_error"),
    ("C-MOD-38", imports("/boxes"), "model_error"),
    ("C-MOD-38", imports("/boxes/files/versions"), "model_error"),
    ("C-MOD-38", imports("/boxes/files", "/boxes/files"), "model_error"),
    ("C-MOD-38", imports("/boxes/files", resources={"files": {"singular": "fil"}}), "model_error"),
    ("C-MOD-38", imports("/boxes/files", resources={"others": {"singular": "file"}}), "model_error"),
    ("C-MOD-38", groups(ximportresources="/boxes/files"), "model_error"),
    (
        "C-MOD-38",
        {
            "groups": {
                "as": {"singular": "a", "ximportresources": ["/bs/files"]},
                "bs": {"singular": "b", "ximportresources": ["/as/files"]},
            }
        },
        "model_error",
    ),
    ("C-MOD-42", {"$include": "#/groups", "$includes": ["#/groups"]}, "model_error"),
    ("C-MOD-42", groups(attributes={"$include": "#/groups/dirs/attributes"}), "model_error"),
    ("C-MOD-42", groups(attributes={"$include": "#/nowhere"}), "model_error"),
    ("C-MOD-42", groups(attributes={"$include": "#/groups/dirs/singular"}), "model_error"),
    ("C-MOD-42", groups(attributes={"$include": "other.json"}), "model_error"),
    ("C-MOD-42", groups(attributes={"$include": "file:///etc/passwd"}), "model_error"),
    ("C-MOD-42", groups(attributes={"$include": "http://127.0.0.1:1/model"}), "model_error"),
    ("C-MOD-42", groups(attributes={"$include": 5}), "model_error"),
    ("C-MOD-42", groups(attributes={"$includes": "#/groups"}), "model_error"),
    ("C-MOD-47", resources(setdefaultversionsticky=True), "model_error"),
    ("C-MOD-47", groups(compatiblewith="http://h/m"), "model_error"),
    ("C-MOD-47", resources(compatiblewith="http://h/m"), "model_error"),
    ("C-MOD-47", attribute(type="string", matchcase=True), "model_error"),
    ("C-ATT-01", {"attributes": {"A": STRING}}, "invalid_attribute"),
    ("C-ATT-01", {"attributes": {"1a": STRING}}, "invalid_attribute"),
    ("C-ATT-01", {"attributes": {"a" * 64: STRING}}, "invalid_attribute"),
    ("C-ATT-01", {"attributes": {"": STRING}}, "invalid_attribute"),
    ("C-VER-15", resources(versionmode="createdat", singleversionroot=False), "model_error"),
    ("C-VER-15", resources(versionmode="semver", singleversionroot=False), "model_error"),
    ("C-VER-16", resources(versionmode="newest"), "model_error"),
    ("C-VER-16", resources(versionmode=""), "model_error"),
    ("C-VAL-16", resources(validatecompatibility=True), "model_error"),
]


@pytest.mark.parametrize("row", sorted({row for row, _, _ in FAULTS}))
def test_faults(empty: Client, row: str) -> None:
    found = [(source, fault(empty, source), name) for each, source, name in FAULTS if each == row]
    assert [(source, name) for source, name, _ in found] == [(source, name) for source, _, name in found]


# -- the published models -----------------------------------------------------------------------------------------


def test_the_built_in_source_can_be_put_back(database: Database) -> None:
    client = serve(database, builtin_model())
    source, full = client.get("/modelsource"), client.get("/model")
    assert "$include" not in source.body.decode()
    assert client.put("/modelsource", source.body).status == 200
    assert client.get("/model").body == full.body
    client.put("/endpoints/e/messages/m", {})
    assert client.put("/modelsource", source.body).status == 200
