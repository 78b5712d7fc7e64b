"""The model language: what a model may say, and what the full model says then. Rows of the checklist by their ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.httpapi.conftest import Client, serve
from wirebook.core.model.builtin import builtin_model
from wirebook.storage.database import Database

TEXTS = "spec/xregistry-1.0-rc4"
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


def test_c_mod_01_the_model_is_only_read(registry: Client) -> None:
    reply = registry.get("/model")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert reply.json["groups"].keys() == {"boxes", "dirs"}
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        refused = registry.send(method, "/model", {})
        assert refused.error == (405, "action_not_supported", "/model")
        assert "GET" in refused.headers["Allow"]
    assert registry.get("/model/dirs").error[0] in (400, 404)


def test_c_mod_02_and_03_the_full_model_leaves_nothing_out(empty: Client, shared: Path) -> None:
    folder = shared / TEXTS / "core"
    source, full = (json.loads((folder / f"sample-model{end}.json").read_text()) for end in ("", "-full"))
    assert json.dumps(model(empty, source)) == json.dumps(full)
    source["groups"]["dirs"]["resources"]["files"]["hasdocument"] = False
    attributes = model(empty, source)["groups"]["dirs"]["resources"]["files"]["attributes"]
    assert not {"file", "fileurl", "filebase64"} & attributes.keys()


def test_c_mod_04_and_05_the_source_is_what_was_sent(empty: Client) -> None:
    fresh = empty.get("/modelsource")
    assert (fresh.status, fresh.json) == (200, {})
    source = {"$schema": "http://h/s", "groups": {"zs": {"singular": "z"}, "as": {"singular": "a", "plural": "as"}}}
    assert empty.put("/modelsource", source).body == empty.get("/modelsource").body
    assert json.dumps(empty.get("/modelsource").json) == json.dumps(source)
    assert list(empty.get("/model").json["groups"]) == ["as", "zs"]
    assert "$schema" not in empty.get("/model").json
    assert empty.put("/modelsource", b"").error == (400, "missing_body", "/modelsource")
    assert empty.put("/modelsource", b"{").error[:2] == (400, "parsing_data")
    assert empty.put("/modelsource", {}).json == {}
    assert "groups" not in empty.get("/model").json
    assert empty.get("/zs").error[0] == 400


@pytest.mark.parametrize("source", [None, {}])
def test_c_mod_05_nothing_empties_the_model(database: Database, source: Any) -> None:
    client = serve(database, groups())
    assert client.put("/modelsource", json.dumps(source).encode()).json == {}
    assert "groups" not in client.get("/model").json


@pytest.mark.parametrize("source", [None, {}])
def test_c_mod_05_nothing_empties_the_model_through_the_registry(database: Database, source: Any) -> None:
    client = serve(database, groups())
    assert client.patch("/", {"modelsource": source}).status == 200
    assert "groups" not in client.get("/model").json


@pytest.mark.parametrize("source", [[], 0, False, "", "x", 5])
def test_c_mod_05_what_is_no_model_is_refused(registry: Client, source: Any) -> None:
    assert fault(registry, source) == "model_error"


def test_c_mod_06_names_may_be_left_out(empty: Client) -> None:
    full = model(empty, version(**STRING))["groups"]["dirs"]
    assert (full["plural"], full["resources"]["files"]["plural"]) == ("dirs", "files")
    assert full["resources"]["files"]["attributes"]["x"] == {"name": "x", "type": "string"}


def test_c_typ_06_times_in_a_model_are_in_utc(empty: Client) -> None:
    hour = "2024-01-01T02:00:00+02:00"
    attributes = {
        "at": {"type": "timestamp", "enum": [hour], "required": True, "default": hour},
        "n": {"type": "integer", "required": True, "default": 3.0},
    }
    source = {"groups": {"gs": {"singular": "g", "attributes": attributes}}}
    assert empty.put("/modelsource", source).json == source
    shown = empty.get("/model").json["groups"]["gs"]["attributes"]["at"]
    assert (shown["enum"], shown["default"]) == (["2024-01-01T00:00:00Z"], "2024-01-01T00:00:00Z")
    made = empty.put("/gs/g", {})
    assert (made.json["at"], repr(made.json["n"])) == ("2024-01-01T00:00:00Z", "3")
    assert empty.put("/gs/g", {"at": "2024-01-01T01:00:00+01:00"}).status == 200


def test_c_mod_31_defaults_of_aspects(empty: Client) -> None:
    full = model(empty, resources())["groups"]["dirs"]["resources"]["files"]
    names = [name for name in full if not name.endswith("attributes")]
    assert {name: full[name] for name in names} == {
        "plural": "files",
        "singular": "file",
        "maxversions": 0,
        "setversionid": True,
        "hasdocument": True,
        "versionmode": "manual",
        "singleversionroot": False,
        "validateformat": False,
        "validatecompatibility": False,
        "strictvalidation": False,
    }


def test_c_mod_46_aspects_that_describe(empty: Client) -> None:
    root = {"description": "d", "documentation": "http://h/d", "labels": {"a": ""}}
    type_ = {**root, "icon": "http://h/i", "modelversion": "1.2", "modelcompatiblewith": "http://h/m"}
    source = root | groups(**type_, resources={"files": {"singular": "file", **type_}})
    source["groups"]["dirs"]["attributes"] = {"x": {"type": "string", "description": "an x"}}
    full = model(empty, source)
    group = full["groups"]["dirs"]
    assert root.items() <= full.items()
    assert type_.items() <= group.items()
    assert type_.items() <= group["resources"]["files"].items()
    assert group["attributes"]["x"]["description"] == "an x"


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


def test_c_mod_19_and_20_what_is_named(empty: Client) -> None:
    required = empty.put("/modelsource", attribute(type="string", default="a")).json
    scalar = empty.put("/modelsource", attribute(type="map", item=STRING, default={})).json
    assert required["args"] == scalar["args"] == {"name": "x"}


# -- what is allowed ----------------------------------------------------------------------------------------------

ALLOWED: list[tuple[str, Any]] = [
    ("C-MOD-09", attribute(type="array", item={"type": "map", "item": {"type": "array", "item": STRING}})),
    ("C-MOD-10", attribute(type="object", attributes={})),
    ("C-MOD-10", attribute(type="map", item={"type": "object", "attributes": {"q": STRING}})),
    ("C-MOD-11", attribute(type="xid", target="/dirs")),
    ("C-MOD-11", version(type="url", target="/dirs/files")),
    ("C-MOD-11", version(type="uri", target="/dirs/files[/versions]")),
    ("C-MOD-11", version(type="array", item={"type": "xid", "target": "/dirs/files/versions"})),
    ("C-MOD-13", attribute(type="object", namecharset="Extended", attributes={"a-b": STRING, "1.c:d": STRING})),
    ("C-MOD-13", attribute(type="object", namecharset="STRICT", attributes={"ab": STRING})),
    ("C-MOD-14", attribute(type="object", namecharset="extended", attributes={"a-b": siblings(**{"c-d": STRING})})),
    ("C-MOD-15", attribute(type="string", enum=[])),
    ("C-MOD-15", attribute(type="decimal", enum=[1, 2.5])),
    ("C-MOD-16", attribute(type="string", enum=["a"], strict=False, default="b", required=True)),
    ("C-MOD-20", attribute(type="string", default=None)),
    ("C-MOD-23", version(type="object", attributes={"q": {"type": "string", "matchversions": True}})),
    ("C-MOD-23", version(type="string", matchversions=True)),
    ("C-MOD-25", attribute(type="integer", enum=[1, 2], ifvalues={"1": {"siblingattributes": {"y": STRING}}})),
    ("C-MOD-25", attribute(type="string", enum=["a"], strict=False, ifvalues={"b": {}})),
    ("C-MOD-25", attribute(**siblings(y=siblings(z=STRING)))),
    ("C-MOD-26", attribute(type="string", ifvalues={key: {"siblingattributes": {"y": STRING}} for key in "ab"})),
    ("C-MOD-26", groups(attributes={"x": siblings(z=STRING), "y": siblings(z=STRING)})),
    ("C-MOD-26", attribute(**siblings(**{"*": {"type": "any"}}))),
    ("C-MOD-28", {"groups": {"d" * 57: {"singular": "d" * 61}}}),
    ("C-MOD-29", groups(resources={"f" * 57: {"singular": "f" * 55}})),
    (
        "C-MOD-29",
        {
            "groups": {
                name: {"singular": f"{name}1", "resources": resources()["groups"]["dirs"]["resources"]} for name in "ab"
            }
        },
    ),
    ("C-MOD-33", resources(typemap={"Text/*": "STRING", "*+xml": "Binary", "a/b": "json"})),
    ("C-MOD-34", resources(attributes={"x": STRING}, metaattributes={"x": {"type": "integer"}})),
    ("C-MOD-34", resources(hasdocument=False, attributes={"file": STRING, "fileurl": STRING, "filebase64": STRING})),
    ("C-MOD-35", resources(attributes={"name": {"type": "string", "required": True}, "format": {"enum": ["a"]}})),
    ("C-MOD-35", groups(attributes={"labels": {"required": True}, "createdat": {"required": True}})),
    ("C-MOD-35", resources(metaattributes={"compatibility": {"type": "string", "enum": ["full"]}})),
    ("C-MOD-38", groups(ximportresources=[])),
    ("C-MOD-38", groups(ximportresources=None)),
    ("C-VER-15", resources(versionmode="createdat")),
    ("C-VER-16", resources(versionmode="Manual")),
    ("C-VAL-16", resources(validatecompatibility=True, validateformat=True)),
    ("AMB-20", attribute(type="array", item=STRING, enum=["a"])),
]


@pytest.mark.parametrize("row", sorted({row for row, _ in ALLOWED}))
def test_allowed(empty: Client, row: str) -> None:
    for source in (source for each, source in ALLOWED if each == row):
        assert model(empty, source)


def test_c_mod_35_attributes_of_the_text_stay(empty: Client) -> None:
    sticky = {"name": "defaultversionsticky", "enum": [False], "required": True, "default": False}
    source = resources(metaattributes={"defaultversionsticky": sticky}, attributes={"name": {"required": True}})
    full = model(empty, source)["groups"]["dirs"]["resources"]["files"]
    assert full["metaattributes"]["defaultversionsticky"] == {**sticky, "type": "boolean", "strict": True}
    assert full["attributes"]["name"] == {"name": "name", "type": "string", "required": True}
    assert full["attributes"]["epoch"] == {"name": "epoch", "type": "uinteger", "readonly": True, "required": True}
    assert list(full["attributes"]) == list(
        model(empty, resources())["groups"]["dirs"]["resources"]["files"]["attributes"]
    )


# -- imports ------------------------------------------------------------------------------------------------------


def test_c_mod_38_and_39_imports_are_in_the_source_alone(empty: Client) -> None:
    source = imports("/boxes/files", resources={"others": {"singular": "other"}})
    source["groups"]["crates"] = {"singular": "crate", "ximportresources": ["/dirs/files"]}
    full = model(empty, source)
    assert "ximportresources" not in json.dumps(full)
    assert full["groups"]["dirs"]["resources"].keys() == {"files", "others"}
    expected = full["groups"]["boxes"]["resources"]["files"]
    assert [full["groups"][name]["resources"]["files"] for name in ("dirs", "crates")] == [expected, expected]
    assert {"filesurl", "filescount", "files"} <= full["groups"]["crates"]["attributes"].keys()
    assert empty.put("/crates/c/files/f$details", {}).status == 201


# -- the published models -----------------------------------------------------------------------------------------


def test_the_built_in_source_can_be_put_back(database: Database) -> None:
    client = serve(database, builtin_model())
    source, full = client.get("/modelsource"), client.get("/model")
    assert "$include" not in source.body.decode()
    assert client.put("/modelsource", source.body).status == 200
    assert client.get("/model").body == full.body
    client.put("/endpoints/e/messages/m", {})
    assert client.put("/modelsource", source.body).status == 200


LABELS = "an object of strings whose keys are map keys (1 to 63 of a-z 0-9 : - _ . with a letter or a digit first)"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (resources(maxversions="x"), "maxversions is 'x'; it must be an unsigned integer"),
        (resources(hasdocument=1), "hasdocument is 1; it must be true or false"),
        (resources(labels={"": "x"}), LABELS),
        (resources(labels=["a"]), LABELS),
        (
            resources(labels={"Stage": "x"}),
            LABELS,
        ),
        (
            resources(labels={"a b": "x"}),
            LABELS,
        ),
        (
            resources(labels={"a" * 64: "x"}),
            LABELS,
        ),
        (resources(typemap={"": "json"}), "typemap is an object; it must be an object of strings without an empty key"),
        (resources(attributes=5), "attributes is 5; it must be an object"),
        (resources(typemap={"a/*b*": "json"}), "typemap['a/*b*'] has more than one '*' in its key"),
    ],
)
def test_c_mod_07_errors_say_what_would_be_right(registry: Client, source: Source, why: str) -> None:
    error = registry.put("/modelsource", source)
    assert error.error == (400, "model_error", "/model")
    assert error.json["args"]["error_detail"].endswith(why)
