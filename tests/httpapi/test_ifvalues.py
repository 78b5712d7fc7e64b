"""What values bring with them, and what models ask of values: `ifvalues`, `enum`, `target`, names of members."""

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


def own(shown: Source) -> Source:
    """What an entity has of the extensions, but for what it always has."""
    text = {"self", "xid", "epoch", "createdat", "modifiedat", "ancestorid", "isdefault", "readonly", "specversion"}
    ends = ("id", "url", "count", "sticky")
    return {name: each for name, each in shown.items() if name not in text and not name.endswith(ends)}


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
    for sent, more in ACCEPTED:
        reply = client.put(PATHS[level], sent)
        assert reply.status == 200, (sent, reply.body)
        assert own(reply.json) == {**ALWAYS, **sent, **more}
        assert own(client.get(PATHS[level]).json) == {**ALWAYS, **sent, **more}
        assert own(client.patch(PATHS[level], {}).json) == {**ALWAYS, **sent, **more}


REFUSED: list[tuple[Source, str, str]] = [
    ({"y": 5}, "unknown_attribute", "y"),
    ({"x": "other", "y": 5}, "unknown_attribute", "y"),
    ({"x": "a", "r": "1", "d": "1"}, "unknown_attribute", "d"),
    ({"x": "a", "y": 5}, "required_attribute_missing", "r"),
    ({"x": "a", "r": None}, "required_attribute_missing", "r"),
    ({"x": "a", "r": "1", "y": "5"}, "invalid_attribute", "y"),
    ({"x": "b", "y": 5}, "invalid_attribute", "y"),
    ({"x": "b", "w": "1"}, "unknown_attribute", "w"),
    ({"x": "b", "z": "other", "w": "1"}, "unknown_attribute", "w"),
    ({"x": "c", "Anything": 1}, "invalid_attribute", "Anything"),
    ({"n": 2, "one": "1"}, "unknown_attribute", "one"),
    ({"t": False, "yes": "1"}, "unknown_attribute", "yes"),
    ({"f": 1, "half": "1"}, "unknown_attribute", "half"),
    ({"k": "other", "v": "1"}, "unknown_attribute", "v"),
    ({"o": {"x": "a"}}, "required_attribute_missing", "o.r"),
    ({"o": {"r": "1"}}, "unknown_attribute", "o.r"),
    ({"l": [{"x": "a", "y": "5"}]}, "invalid_attribute", "l[0].y"),
    ({"l": [{}, {"y": 5}]}, "unknown_attribute", "l[1].y"),
    ({"m": {"one": {"y": 5}}}, "unknown_attribute", "m.one.y"),
    ({"y": 5, "l": [{"x": "a"}]}, "unknown_attribute", "y"),
]


@pytest.mark.parametrize("level", PATHS)
def test_c_mod_24_and_amb_03_what_values_do_not_bring(client: Client, level: str) -> None:
    path = PATHS[level]
    before = client.get("/?inline").body
    for sent, error, name in REFUSED:
        for method in ("PUT", "PATCH"):
            body = client.send(method, path, sent).json
            subject = f"{F}/versions/1" if level == "version" else path
            assert (body["type"].rpartition("#")[2], body["subject"]) == (error, subject), (sent, body)
            assert (body["args"].get("name") or body["args"].get("list")) == name
    assert client.get("/?inline").body == before


@pytest.mark.parametrize("level", PATHS)
def test_c_mod_26_two_values_that_bring_the_same(client: Client, level: str) -> None:
    before = client.get("/?inline").body
    reply = client.put(PATHS[level], {"x": "a", "r": "1", "s": "a"})
    assert (reply.status, reply.error[1], reply.json["args"]["name"]) == (400, "invalid_attribute", "y")
    assert client.get("/?inline").body == before
    assert client.put(PATHS[level], {"x": "e", "s": "a"}).status == 200


@pytest.mark.parametrize("level", PATHS)
def test_c_mod_27_what_is_left_over_is_refused(client: Client, level: str) -> None:
    path = PATHS[level]
    assert client.put(path, {"x": "b", "y": "1", "d": "1", "z": "q", "w": "1"}).status == 200
    before = client.get("/?inline").body
    for sent in ({"x": "e"}, {"x": None}, {"x": "a", "r": "1"}, {"z": "other"}, {"z": None}, {"x": "e", "y": None}):
        assert client.patch(path, sent).error[1] in ("unknown_attribute", "invalid_attribute"), sent
    assert client.put(path, {"x": "e", "y": "1"}).error[1] == "unknown_attribute"
    assert client.get("/?inline").body == before
    assert own(client.patch(path, {"z": "other", "w": None}).json)["z"] == "other"
    nothing = dict.fromkeys(("y", "d", "z", "w"))
    assert own(client.patch(path, {"x": "e", **nothing}).json) == {**ALWAYS, "x": "e"}
    assert own(client.patch(path, {"x": "b"}).json) == {**ALWAYS, "x": "b", "d": "dd"}
    assert own(client.put(path, {"x": "a", "r": "1"}).json) == {**ALWAYS, "x": "a", "r": "1"}
    assert own(client.put(path, {"x": None, **nothing}).json) == ALWAYS
    assert client.put(path, {"unknown": None}).error[1] == "unknown_attribute"


def test_c_mod_24_attributes_in_headers(database: Database) -> None:
    source = model({"x": brings(a={"y": INTEGER, "r": required()})})
    source["groups"]["dirs"]["resources"]["files"]["hasdocument"] = True
    client = serve(database, source)
    reply = client.put(F, b"text", xregistry_x="A", xregistry_y="5", xregistry_r="1")
    assert (reply.status, reply.headers["xRegistry-y"]) == (201, "5")
    assert client.get(f"{F}$details").json["y"] == 5
    assert client.put(F, b"text", xregistry_x="other").error[1] == "unknown_attribute"
    gone = client.put(F, b"text", xregistry_x="other", xregistry_y="null", xregistry_r="null")
    assert (gone.status, "xRegistry-y" in gone.headers) == (200, False)
    assert client.put("/dirs/d/files/g", b"text", xregistry_x="a").error[1] == "required_attribute_missing"


def test_c_mod_24_attributes_are_found_by_filters(client: Client) -> None:
    client.put(F, {"x": "a", "y": 10, "r": "1"})
    client.put("/dirs/d/files/g", {"x": "b", "y": "10"})
    client.put("/dirs/d/files/h", {})
    assert client.get("/dirs/d/files?filter=y=10").json.keys() == {"f", "g"}
    assert client.get("/dirs/d/files?filter=y>9,x=a").json.keys() == {"f"}


# -- what values may be -----------------------------------------------------------------------------------------------


def one(database: Database, **aspects: Any) -> Client:
    client = serve(database, model({"v": aspects}))
    client.put(F, {})
    return client


@pytest.mark.parametrize(
    ("aspects", "accepted", "refused"),
    [
        ({**STRING, "enum": ["one", "Two"]}, ["one", "ONE", "two", "Two"], ["", "on", "onetwo", 1]),
        ({**STRING, "enum": ["one"], "strict": True}, ["One"], ["two"]),
        ({**STRING, "enum": ["one"], "strict": False}, ["one", "two", ""], [1]),
        ({**STRING, "enum": []}, ["one", ""], [1]),
        ({**INTEGER, "enum": [1, -2]}, [1, -2], [2, "1", True]),
        ({"type": "decimal", "enum": [1, 2.5]}, [1, 2.5], [2, 1.5]),
        ({"type": "boolean", "enum": [True]}, [True], [False, 1, "true"]),
        ({"type": "uri", "enum": ["http://h/a"]}, ["http://h/a"], ["http://h/b"]),
        ({"type": "array", "item": STRING, "enum": ["a"]}, [["A", "a"], []], [["a", "b"], ["b"]]),
    ],
)
def test_c_mod_16_and_amb_18_lists_of_values(
    database: Database, aspects: Source, accepted: list[Any], refused: list[Any]
) -> None:
    """Texts compare without case, and stay as they were sent."""
    client = one(database, **aspects)
    for path in PATHS.values():
        for value in accepted:
            assert client.patch(path, {"v": value}).json["v"] == value
        before = client.get("/?inline").body
        for value in refused:
            assert client.put(path, {"v": value}).error[1] == "invalid_attribute", value
        assert client.get("/?inline").body == before


TARGETS: list[tuple[str, list[str], list[str]]] = [
    ("/dirs", ["/dirs/none"], [F, "/boxes/b", "/", "/dirs", "/dirs/d/files"]),
    ("/dirs/files", [F, "/dirs/a/files/b"], ["/dirs/d", f"{F}/versions/1", f"{F}/meta", "/boxes/b"]),
    ("/dirs/files[/versions]", [F, f"{F}/versions/1"], ["/dirs/d", f"{F}/meta", f"{F}/versions"]),
    ("/dirs/files/versions", [f"{F}/versions/1"], [F, "/dirs/d", f"{F}/versions", f"{F}/versions/1/x"]),
    ("", [F, "/", "/dirs/d", f"{F}/meta", f"{F}/versions/1", "/boxes/b"], ["/none/a", "/dirs", f"{F}/versions"]),
]


@pytest.mark.parametrize("type_", ["xid", "uri", "url"])
def test_c_mod_12_targets(database: Database, type_: str) -> None:
    attributes = {
        f"v{number}": {"type": type_, **({"target": target} if target else {})}
        for number, (target, _, _) in enumerate(TARGETS)
    }
    source = model(attributes)
    source["groups"]["boxes"] = {"singular": "box"}
    client = serve(database, source)
    client.put(F, {})
    for number, (target, accepted, refused) in enumerate(TARGETS):
        name = f"v{number}"
        free = ["http://h/x", "#/dirs/d", "dirs/d"] if type_ != "xid" else []
        free += refused if type_ != "xid" and not target else []
        for value in (*accepted, *free):
            assert client.put("/dirs/d", {name: value}).json[name] == value, (target, value)
        for value in [] if type_ != "xid" and not target else refused:
            reply = client.put("/dirs/d", {name: value})
            assert (reply.error[1], reply.json["args"]["name"]) == ("invalid_attribute", name), (target, value)
    assert type_ != "xid" or client.put("/dirs/d", {"v0": "http://h/x"}).error[1] == "invalid_attribute"


@pytest.mark.parametrize("level", PATHS)
def test_c_mod_13_and_14_names_of_members(database: Database, level: str) -> None:
    any_ = {"*": {"type": "any"}}
    attributes = {
        "strict": {"type": "object", "attributes": any_},
        "wide": {
            "type": "object",
            "namecharset": "EXTENDED",
            "attributes": {"a-b": brings(c={"d.e": INTEGER}), "o": {"type": "object", "attributes": any_}, **any_},
        },
    }
    client = serve(database, model(attributes))
    client.put(F, {})
    path = PATHS[level]
    for value in ({"a_b": 1, "_c": 1}, {"a" * 63: 1}):
        assert client.put(path, {"strict": value}).json["strict"] == value
    for value in ({"a-b": "C", "d.e": 5}, {"1:a": 1, "o": {"a_b": 1}}):
        assert client.put(path, {"wide": value}).json["wide"] == value
    in_brackets = {"a.b": "['a.b']", "": "['']"}
    for name in ("a-b", "A", "1a", "a" * 64, "é", *in_brackets):
        reply = client.put(path, {"strict": {name: 1}})
        place = f"strict{in_brackets.get(name, f'.{name}')}"
        assert (reply.error[1], reply.json["args"]["name"]) == ("invalid_attribute", place)
    for name in ("A", "_a", "-a", "a b", "", "a" * 64):
        assert client.put(path, {"wide": {name: 1}}).error[1] == "invalid_attribute", name
    assert client.put(path, {"wide": {"o": {"a-b": 1}}}).error[1] == "invalid_attribute"
    assert client.put(path, {"wide": {"a-b": "c", "d.e": "5"}}).error[1] == "invalid_attribute"
    source = model({"wide": {"type": "object", "namecharset": "none"}})
    assert client.put("/modelsource", source).error == (400, "model_error", "/model")


# -- what there is not ------------------------------------------------------------------------------------------------


def test_c_neg_01_no_other_way_to_guard_a_write(client: Client) -> None:
    """Beside the preconditions of HTTP, the epoch alone guards a write."""
    assert client.put("/dirs/d", {"name": "n"}, if_unmodified_since="x").status == 200
    assert client.put("/dirs/d", {"name": "n"}, if_match='"none"').status == 412
    wrong = client.put("/dirs/d", {"epoch": 99}, if_match="*")
    assert wrong.error == (400, "mismatched_epoch", "/dirs/d")
    assert client.delete("/dirs/d?epoch=99").error[:2] == (400, "mismatched_epoch")


@pytest.mark.parametrize(
    "type_", ["application/json", "application/merge-patch+json", "application/json-patch+json", ""]
)
def test_c_neg_03_a_patch_is_json(client: Client, type_: str) -> None:
    client.put("/dirs/d", {"name": "n", "labels": {"a": "1"}})
    shown = client.patch("/dirs/d", {"labels": {"b": "2"}}, content_type=type_).json
    assert (shown["name"], shown["labels"]) == ("n", {"b": "2"})
    operations = [{"op": "remove", "path": "/name"}]
    assert client.patch("/dirs/d", operations, content_type=type_).error[:2] == (400, "parsing_data")
    assert client.get("/dirs/d").json["name"] == "n"


def test_c_neg_04_what_is_not_written(client: Client) -> None:
    assert client.get("/dirs/d$details").status in (400, 404)
    assert client.put("/dirs/d$details", {}).error[0] == 400
    client.put(f"{F}/versions/2", {})
    assert client.patch(f"{F}/versions/1", {"isdefault": True}).json["isdefault"] is False
    assert client.get(F).json["versionid"] == "2"


def test_c_neg_04_headers_are_about_versions(database: Database) -> None:
    client = serve(database, {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}})
    for name in ("meta", "meta_labels", "meta_readonly", "metareadonly"):
        assert client.put(F, b"text", **{f"xregistry_{name}": "x"}).error[0] == 400
    reply = client.put(F, b"text", xregistry_isdefault="false")
    assert (reply.status, reply.headers["xRegistry-isdefault"]) == (201, "true")
    assert not [name for name in reply.headers if name.startswith("xRegistry-meta") and name != "xRegistry-metaurl"]


def test_amb_16_a_model_of_nothing(database: Database) -> None:
    client = serve(database, model({}))
    for sent in ({"modelsource": {}}, {"modelsource": None}):
        assert client.put("/modelsource", model({})).status == 200
        assert client.put("/", sent).status == 200
        assert (client.get("/modelsource").json, "groups" in client.get("/model").json) == ({}, False)
        assert client.get("/dirs").error[0] in (400, 404)


def test_amb_17_modes_of_versions_are_a_capability(database: Database) -> None:
    client = serve(database, model({}))
    assert client.get("/capabilities").json["versionmodes"] == ["createdat", "manual", "modifiedat", "semver"]
    assert client.patch("/capabilities", {"versionmodes": ["createdat"]}).error[1] == "capability_missing_value"
    assert client.patch("/capabilities", {"versionmodes": ["MANUAL"]}).json["versionmodes"] == ["manual"]
    ordered = model({})
    ordered["groups"]["dirs"]["resources"]["files"]["versionmode"] = "createdat"
    assert client.put("/modelsource", ordered).error == (400, "model_error", "/model")
    assert client.patch("/capabilities", {"versionmodes": ["*"]}).status == 200
    assert client.put("/modelsource", ordered).status == 200
    assert client.patch("/capabilities", {"versionmodes": ["manual"]}).error[0] == 400


# -- attributes of the text ---------------------------------------------------------------------------------------


def deciding(level: str, name: str, **aspects: Any) -> Source:
    """A model in which a value of an attribute of the text brings `extra`."""
    own = {name: {**brings(one={"extra": required("filled")}), **aspects}}
    files = {"singular": "file", "hasdocument": False, **({level: own} if level.endswith("ributes") else {})}
    dirs = {"singular": "dir", "resources": {"files": files}, **({"attributes": own} if level == "group" else {})}
    return {"groups": {"dirs": dirs}}


@pytest.mark.parametrize(
    ("level", "name", "one", "other"),
    [
        ("group", "dirid", "/dirs/one", "/dirs/two"),
        ("attributes", "fileid", "/dirs/d/files/one/versions/v", "/dirs/d/files/two/versions/v"),
        ("attributes", "versionid", "/dirs/d/files/f/versions/one", "/dirs/d/files/f/versions/two"),
        ("metaattributes", "fileid", "/dirs/d/files/one/meta", "/dirs/d/files/two/meta"),
    ],
)
def test_c_mod_24_ids_bring_others(database: Database, level: str, name: str, one: str, other: str) -> None:
    """An id is the value of an attribute, too."""
    model = deciding(level, name, required=True, immutable=True)
    client = serve(database, model)
    assert client.put(one, {}).json["extra"] == "filled"
    assert client.put(one, {"extra": "x", name: "one"}).json["extra"] == "x"
    assert client.patch(one, {"labels": {}}).json["extra"] == "x"
    assert "extra" not in client.put(other, {}).json
    assert client.put(other, {"extra": "x"}).error == (400, "unknown_attribute", other)
    source = client.get("/modelsource").json
    assert client.put("/modelsource", source | {"description": "again"}).status == 200
    assert client.get(one).json["extra"] == "x"
    plain = {
        "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "hasdocument": False}}}}
    }
    assert client.put("/modelsource", plain).error == (400, "model_compliance_error", "/model")


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
def test_what_the_server_settles_later_brings_nothing(
    registry: Client, level: str, name: str, aspects: dict[str, Any]
) -> None:
    refused = registry.put("/modelsource", deciding(level, name, **aspects))
    assert refused.error == (400, "model_error", "/model")
    assert f".{name}.ifvalues: " in refused.json["args"]["error_detail"]
