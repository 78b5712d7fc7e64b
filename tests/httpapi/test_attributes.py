"""Attributes: names, nulls, defaults, what is required, what is the server's. Rows ATT and COM of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import BASE, Client, serve
from wirebook.storage.database import Database

TEXT: Final = {"type": "string"}
GIVEN: Final = {
    "xdef": {"type": "integer", "required": True, "default": 7},
    "xobj": {
        "type": "object",
        "attributes": {"a": TEXT, "d": {"type": "string", "required": True, "default": "deep"}},
    },
    "xstr": TEXT,
    "xone": {"type": "string", "enum": ["one", "two"]},
    "xnum": {"type": "integer", "enum": [1, 2]},
    "xsome": {"type": "string", "enum": ["one"], "strict": False},
}
NEEDY: Final = {
    "xreq": {"type": "string", "required": True},
    "xin": {"type": "object", "attributes": {"r": {"type": "string", "required": True}, "o": TEXT}},
}
OPEN: Final = {"*": {"type": "any"}}
MODEL: Final[dict[str, Any]] = {
    "attributes": GIVEN,
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": GIVEN,
            "resources": {
                "datas": {"singular": "data", "hasdocument": False, "attributes": GIVEN, "metaattributes": GIVEN},
                "files": {"singular": "file", "attributes": GIVEN},
            },
        },
        "reqs": {
            "singular": "req",
            "attributes": NEEDY,
            "resources": {"things": {"singular": "thing", "hasdocument": False}},
        },
        "lots": {
            "singular": "lot",
            "attributes": OPEN,
            "resources": {
                "needs": {"singular": "need", "hasdocument": False, "attributes": NEEDY},
                "metas": {"singular": "met", "hasdocument": False, "metaattributes": NEEDY},
                "opens": {"singular": "open", "hasdocument": False, "attributes": OPEN, "metaattributes": OPEN},
            },
        },
    },
}
X: Final = "/dirs/d/datas/x"
VERSION: Final = f"{X}/versions/1"
META: Final = f"{X}/meta"
LEVELS: Final = ["/", "/dirs/d", X, VERSION, META]
SUBJECTS: Final = {"/": "/", "/dirs/d": "/dirs/d", X: VERSION, VERSION: VERSION, META: META}


@pytest.fixture
def given(database: Database) -> Client:
    """A registry with defaults and required attributes at every level, and one entity of each kind."""
    client = serve(database, MODEL)
    assert client.put(X, {}).status == 201
    return client


# -- names and sizes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_01_names(given: Client, path: str) -> None:
    for name in ("A", "xStr", "1a", "a-b", "a b", "", "$schema2", "a.b", "é", "a" * 64, "*"):
        for method in ("PUT", "PATCH"):
            for value in (5, None):
                reply = given.send(method, path, {name: value})
                assert reply.error == (400, "invalid_attribute", SUBJECTS[path]), name
                assert reply.json["args"]["name"] == name


@pytest.mark.parametrize("path", ["/lots/l", "/lots/l/opens/o", "/lots/l/opens/o/meta"])
def test_c_att_01_c_att_07_names_of_extensions(given: Client, path: str) -> None:
    sent = {"a": 1, "_b2": "x", "z" * 63: {"A b": [None]}, "n": 1.5}
    assert given.put(path, sent).status == 201
    shown = given.get(path).json
    assert {name: shown[name] for name in sent} == sent
    for name in ("A", "1a", "a-b", "", "a" * 64, "*"):
        assert given.patch(path, {name: 1}).error[1] == "invalid_attribute", name


@pytest.mark.parametrize("name", ["A", "1a", "a-b", "", "a" * 64, "$schema"])
@pytest.mark.parametrize("inner", [False, True])
def test_c_att_01_names_in_models(given: Client, name: str, inner: bool) -> None:
    attributes: dict[str, Any] = {name: TEXT}
    if inner:
        attributes = {"xobject": {"type": "object", "attributes": attributes}}
    reply = given.put("/modelsource", {**MODEL, "attributes": {**GIVEN, **attributes}})
    assert (reply.status, reply.error[1]) in ((400, "invalid_attribute"), (400, "model_error"))
    assert reply.json["subject"] == "/model"


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_02_name_and_value_have_4096_bytes_at_most(given: Client, path: str) -> None:
    most = "é" * ((4096 - len("xstr")) // 2)
    assert given.patch(path, {"xstr": most}).json["xstr"] == most
    reply = given.patch(path, {"xstr": f"{most}a"})
    assert reply.error == (400, "invalid_attribute", SUBJECTS[path])
    assert reply.json["args"]["name"] == "xstr"
    assert given.get(path).json["xstr"] == most
    assert given.patch(path, {"labels": {"k": "v" * 4096}}).status == 200
    assert given.patch(path, {"labels": {"k": "v" * 4097}}).json["args"]["name"] == "labels.k"
    assert given.patch(path, {"xdef": 10**4091}).status == 200
    assert given.patch(path, {"xdef": 10**4092}).error[1] == "invalid_attribute"


def test_c_att_02_in_headers(given: Client) -> None:
    assert given.put("/dirs/d/files/f", b"", xregistry_description="a" * 4085).status == 201
    reply = given.put("/dirs/d/files/f", b"", xregistry_description="a" * 4086)
    assert reply.error == (400, "invalid_attribute", "/dirs/d/files/f/versions/1")


def test_c_att_08_names_of_the_text_are_taken(given: Client) -> None:
    def refused(attributes: dict[str, Any], *where: str) -> tuple[int, str, str | None]:
        source: dict[str, Any] = {"groups": {"gs": {"singular": "g", "resources": {"rs": {"singular": "r"}}}}}
        at = source
        for step in where:
            at = at[step]
        at["attributes"] = attributes
        return given.put("/modelsource", {"groups": {**MODEL["groups"], **source["groups"]}, **{
            name: value for name, value in source.items() if name != "groups"
        }}).error  # fmt: skip

    resource = ("groups", "gs", "resources", "rs")
    for name in ("epoch", "self", "name", "createdat", "gs", "gscount", "capabilities", "specversion", "registryid"):
        assert refused({name: {"type": "boolean"}})[:2] == (400, "model_error"), name
    for name in ("gid", "deprecated", "rs", "rsurl", "rscount", "shortself", "xid", "labels"):
        assert refused({name: {"type": "boolean"}}, "groups", "gs")[:2] == (400, "model_error"), name
    for name in ("rid", "versionid", "isdefault", "ancestorid", "r", "rurl", "rbase64", "meta", "metaurl", "versions",
                 "versionsurl", "versionscount", "format", "contenttype"):  # fmt: skip
        assert refused({name: {"type": "integer"}}, *resource)[:2] == (400, "model_error"), name
        assert refused({name: {"type": "array", "item": TEXT}}, *resource)[:2] == (400, "model_error"), name


def test_c_att_08_without_documents_three_names_are_free(given: Client) -> None:
    resource = {
        "singular": "r",
        "hasdocument": False,
        "attributes": {"r": TEXT, "rurl": TEXT, "rbase64": {"type": "integer"}},
    }
    groups = {**MODEL["groups"], "gs": {"singular": "g", "resources": {"rs": resource}}}
    assert given.put("/modelsource", {**MODEL, "groups": groups}).status == 200
    sent = {"r": "a", "rurl": "b", "rbase64": 5}
    shown = given.put("/gs/g/rs/x", sent).json
    assert {name: shown[name] for name in sent} == sent


# -- values that are there or not ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_03_04_and_10_what_has_no_value_is_not_shown(given: Client, path: str) -> None:
    full = {"xstr": "", "labels": {"a": "1", "b": ""}, "xobj": {"a": "x"}}
    for method in ("PUT", "PATCH"):
        shown = given.put(path, full).json
        assert (shown["xstr"], shown["labels"], shown["xobj"]) == ("", {"a": "1", "b": ""}, {"a": "x", "d": "deep"})
        shown = given.send(method, path, {**full, "labels": {"c": "3"}, "xobj": {}}).json
        assert (shown["labels"], shown["xobj"]) == ({"c": "3"}, {"d": "deep"})
        shown = given.send(method, path, {**full, "labels": {}}).json
        assert shown["labels"] == {}
        shown = given.send(method, path, dict.fromkeys(full)).json
        assert not shown.keys() & full.keys()
        assert None not in shown.values()
        given.put(path, full)
        assert (given.send(method, path, {}).json.keys() >= full.keys()) == (method == "PATCH")


SERVERS: Final[dict[str, list[str]]] = {
    "/": ["specversion", "self", "xid", "shortself", "model", "dirsurl", "dirscount"],
    "/dirs/d": ["self", "xid", "shortself", "datasurl", "datascount", "filesurl", "filescount"],
    X: ["self", "xid", "shortself", "isdefault", "metaurl", "versionsurl", "versionscount", "formatvalidated",
        "formatvalidatedreason", "compatibilityvalidated", "compatibilityvalidatedreason"],
    VERSION: ["self", "xid", "shortself", "isdefault", "formatvalidated", "formatvalidatedreason",
              "compatibilityvalidated", "compatibilityvalidatedreason"],
    META: ["self", "xid", "shortself", "readonly", "defaultversionurl"],
}  # fmt: skip


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_05_what_is_the_servers_is_ignored(given: Client, path: str) -> None:
    shown = given.get(path).json
    for value in (5, "", None, True, [], {"a": 1}, "http://elsewhere/x", 1.5):
        for method in ("PUT", "PATCH"):
            reply = given.send(method, path, dict.fromkeys(SERVERS[path], value))
            assert reply.status == 200, (value, reply.body)
            now = reply.json
            assert {name: now[name] for name in SERVERS[path] if name in now} == {
                name: shown[name] for name in SERVERS[path] if name in shown
            }


def test_c_att_05_ids_and_epochs_are_not_ignored(given: Client) -> None:
    for path, name in (
        ("/", "registryid"),
        ("/dirs/d", "dirid"),
        (X, "dataid"),
        (VERSION, "versionid"),
        (META, "dataid"),
    ):
        for value in (5, "", [], True):
            reply = given.patch(path, {name: value})
            assert reply.error[:2] == (400, "invalid_attribute"), (path, value)
            assert reply.json["args"]["name"] == name
        assert given.patch(path, {name: None}).status == 200
        for value in ("x", "1", -1, 1.5, True, [], {}):
            reply = given.patch(path, {"epoch": value})
            assert reply.error == (400, "invalid_attribute", SUBJECTS[path]), (path, value)
            assert reply.json["args"]["name"] == "epoch"


def test_c_att_06_what_the_server_changes_alone_is_no_update(given: Client) -> None:
    given.put(f"{X}/versions/2", {})
    before = given.get(f"{X}/versions").json
    assert [each["isdefault"] for each in before.values()] == [False, True]
    given.patch(META, {"defaultversionid": "1"})
    after = given.get(f"{X}/versions").json
    assert [each["isdefault"] for each in after.values()] == [True, False]
    assert [(each["epoch"], each["modifiedat"]) for each in after.values()] == [
        (each["epoch"], each["modifiedat"]) for each in before.values()
    ]


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_07_what_the_model_does_not_name_is_unknown(given: Client, path: str) -> None:
    for sent, name in (({"nope": 1}, "nope"), ({"nope": None}, "nope"), ({"xobj": {"nope": 1}}, "xobj.nope"),
                       ({"specversio": ""}, "specversio"), ({"dirs2": {}}, "dirs2")):  # fmt: skip
        for method in ("PUT", "PATCH"):
            reply = given.send(method, path, sent)
            assert reply.error == (400, "unknown_attribute", SUBJECTS[path]), sent
            assert reply.json["args"] == {"name": name}


def test_c_att_07_attributes_of_other_levels_are_unknown(given: Client) -> None:
    for path, names in (
        ("/", ["dirid", "deprecated", "versionid", "isdefault", "metaurl", "constraints"]),
        ("/dirs/d", ["registryid", "specversion", "dirs", "versionid", "capabilities", "modelsource", "ancestorid"]),
        (X, ["dirid", "deprecated", "xref", "defaultversionid", "specversion", "data", "dataurl"]),
        (VERSION, ["meta", "metaurl", "versions", "versionsurl", "versionscount", "deprecated", "readonly"]),
        (META, ["name", "description", "documentation", "icon", "versionid", "format", "metaurl", "versions"]),
    ):
        for name in names:
            reply = given.patch(path, {name: None})
            assert reply.error == (400, "unknown_attribute", SUBJECTS[path]), (path, name)


@pytest.mark.parametrize("name", ["meta", "metaurl", "versions", "versionsurl", "versionscount"])
def test_c_att_08_a_version_has_nothing_that_is_the_resources(registry: Client, name: str) -> None:
    types = {
        each: {"singular": each[:-1], "hasdocument": each == "files", "attributes": OPEN} for each in ("files", "datas")
    }
    assert registry.put("/modelsource", {"groups": {"dirs": {"singular": "dir", "resources": types}}}).status == 200
    assert registry.put(X, {"any": 1}).status == registry.put("/dirs/d/files/f", b"x").status == 201
    before = registry.get("/export").body
    for value in ("v", 5, {}, None):
        for method, url, sent in (
            ("PUT", VERSION, {name: value}),
            ("PATCH", VERSION, {name: value}),
            ("POST", f"{X}/versions", {"1": {name: value}}),
            ("PATCH", X, {"versions": {"1": {name: value}}}),
            ("PATCH", "/dirs/d/files/f/versions/1$details", {name: value}),
        ):
            reply = registry.send(method, url, sent)
            assert reply.error[:2] == (400, "invalid_attribute"), (method, url, sent)
            assert reply.json["args"]["name"] == name
    if name in ("meta", "versions"):
        assert registry.post(X, {name: {}}).error[:2] == (400, "invalid_attribute")
        reply = registry.send("PUT", "/dirs/d/files/f/versions/1", b"x", **{f"xregistry-{name}": "v"})
        assert reply.error[:2] == (400, "extra_xregistry_header")
    assert registry.get("/export").body == before


@pytest.mark.parametrize("name", ["meta", "metaurl", "versions", "versionsurl", "versionscount"])
def test_attribute_of_the_resource_is_unknown_in_a_version(registry: Client, name: str) -> None:
    assert registry.put(VERSION, {}).status == 201
    reply = registry.put(VERSION, {name: "v"})
    assert (reply.error, reply.json["args"]) == ((400, "unknown_attribute", VERSION), {"name": name})


def test_c_att_09_enums(given: Client) -> None:
    for path in LEVELS:
        for sent in ({"xone": "ONE"}, {"xsome": "three"}, {"xone": "two", "xnum": 2.0}):
            assert given.patch(path, sent).status == 200
            assert given.get(path).json["xone"] in ("ONE", "two")
        assert given.patch(path, {"xone": "three"}).error == (400, "invalid_attribute", SUBJECTS[path])
        assert given.patch(path, {"xnum": 3}).json["args"]["name"] == "xnum"


# -- defaults and what is required --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_11_12_and_14_defaults(given: Client, path: str) -> None:
    assert given.get(path).json["xdef"] == 7
    assert "xobj" not in given.get(path).json
    for method, sent, expected in (
        ("PATCH", {"xdef": 8}, 8),
        ("PATCH", {}, 8),
        ("PATCH", {"xdef": None}, 7),
        ("PUT", {"xdef": 9}, 9),
        ("PUT", {}, 7),
        ("PUT", {"xdef": 9}, 9),
        ("PUT", {"xdef": None}, 7),
    ):
        assert given.send(method, path, sent).json["xdef"] == expected, (method, sent)
        assert given.get(path).json["xdef"] == expected
    assert given.patch(path, {"xobj": {}}).json["xobj"] == {"d": "deep"}
    assert given.patch(path, {"xobj": {"a": "b", "d": None}}).json["xobj"] == {"a": "b", "d": "deep"}
    assert "xobj" not in given.patch(path, {"xobj": None}).json


def test_c_att_11_defaults_of_what_is_made_on_the_way(given: Client) -> None:
    given.put("/dirs/new/datas/y/versions/v", {})
    for path in ("/dirs/new", "/dirs/new/datas/y", "/dirs/new/datas/y/versions/v", "/dirs/new/datas/y/meta"):
        assert given.get(path).json["xdef"] == 7


def test_c_att_12_a_new_default_is_taken_when_an_attribute_goes_back(given: Client) -> None:
    given.patch("/dirs/d", {"xdef": 8})
    source = given.get("/modelsource").json
    source["groups"]["dirs"]["attributes"]["xdef"]["default"] = 70
    assert given.put("/modelsource", source).status == 200
    assert given.get("/dirs/d").json["xdef"] == 8
    assert given.patch("/dirs/d", {"xdef": None}).json["xdef"] == 70
    assert given.put("/dirs/e", {}).json["xdef"] == 70


REQUIRED: Final = [
    ("/reqs/r", "/reqs/r"),
    ("/lots/l/needs/n", "/lots/l/needs/n/versions/1"),
    ("/lots/l/needs/n/versions/1", "/lots/l/needs/n/versions/1"),
    ("/lots/l/metas/m/meta", "/lots/l/metas/m/meta"),
]


@pytest.mark.parametrize(("path", "subject"), REQUIRED)
def test_c_att_13_what_is_required(given: Client, path: str, subject: str) -> None:
    full = {"xreq": "", "xin": {"r": "x"}}
    for sent, missing in (({}, "xreq"), ({"xreq": None}, "xreq"), ({"xreq": "", "xin": {"o": ""}}, "xin.r"),
                          ({"xreq": "a", "xin": {"r": None}}, "xin.r")):  # fmt: skip
        for method in ("PUT", "PATCH"):
            reply = given.send(method, path, sent)
            assert reply.error == (400, "required_attribute_missing", subject), (method, sent)
            assert reply.json["args"] == {"list": missing}
            assert given.get(path).status == 404
    assert given.put(path, full).status == 201
    before = given.get(path).json
    for method, sent in (("PUT", {}), ("PUT", {"xin": {"r": "x"}}), ("PATCH", {"xreq": None}), ("PATCH", {"xin": {}})):
        assert given.send(method, path, sent).error == (400, "required_attribute_missing", subject), (method, sent)
    assert given.get(path).json == before
    assert given.patch(path, {"xin": None}).status == 200


def test_c_att_13_of_what_is_nested(given: Client) -> None:
    for path, sent, subject in (
        ("/", {"reqs": {"a": {"xreq": "x"}, "b": {}}}, "/reqs/b"),
        ("/reqs", {"a": {"xreq": "x"}, "b": {}}, "/reqs/b"),
        ("/lots/l", {"needs": {"n": {"versions": {"v": {"name": "n"}}}}}, "/lots/l/needs/n/versions/v"),
        ("/lots/l/metas", {"m": {"meta": {"labels": {}}}}, "/lots/l/metas/m/meta"),
        ("/lots/l/metas", {"m": {}}, "/lots/l/metas/m/meta"),
        ("/lots/l/needs/n", {}, "/lots/l/needs/n/versions/1"),
    ):
        before = given.get("/export").body
        assert given.post(path, sent).error == (400, "required_attribute_missing", subject)
        assert given.get("/export").body == before


# -- name, documentation, labels, deprecated ----------------------------------------------------------------------


@pytest.mark.parametrize("path", LEVELS[:-1])
def test_c_com_01_texts(given: Client, path: str) -> None:
    full = {"name": "n", "description": "", "documentation": "https://example.com/d", "icon": "/i.svg"}
    shown = given.put(path, full).json
    assert {name: shown[name] for name in full} == full
    for name in ("name", "documentation", "icon"):
        for method in ("PUT", "PATCH"):
            reply = given.send(method, path, {name: ""})
            assert reply.error == (400, "invalid_attribute", SUBJECTS[path]), name
            assert reply.json["args"]["name"] == name
    for name in ("documentation", "icon"):
        for value in ("a b", "{", 5):
            assert given.patch(path, {name: value}).error[1] == "invalid_attribute"
    assert given.get(path).json["name"] == "n"


def test_c_com_01_siblings_may_have_one_name_and_headers_must_not_be_empty(given: Client) -> None:
    assert given.post("/dirs", {"a": {"name": "n"}, "b": {"name": "n"}}).status == 200
    reply = given.put("/dirs/d/files/f", b"", xregistry_name="")
    assert reply.error == (400, "invalid_attribute", "/dirs/d/files/f/versions/1")
    assert given.put("/dirs/d/files/f", b"", xregistry_description="").headers["xRegistry-description"] == ""


@pytest.mark.parametrize("path", LEVELS)
def test_c_com_02_labels(given: Client, path: str) -> None:
    for labels in ({}, {"a": ""}, {"a.b-c_d:e": "é"}, {"0": "x", "z": "y"}):
        assert given.put(path, {"labels": labels}).json["labels"] == labels
        assert given.get(path).json["labels"] == labels
    for bad in ({"": "a"}, {"A": "a"}, {"-a": ""}, {"a" * 64: ""}, {"a": 5}, {"a": ["b"]}, {"a": {}}, [], "a"):
        assert given.put(path, {"labels": bad}).error == (400, "invalid_attribute", SUBJECTS[path]), bad


def test_c_com_03_labels_of_a_version_and_of_its_resource(given: Client) -> None:
    given.put(X, {"labels": {"version": "1"}, "meta": {"labels": {"meta": "1"}}})
    assert given.get(VERSION).json["labels"] == {"version": "1"}
    assert given.get(META).json["labels"] == {"meta": "1"}
    assert given.patch(META, {"labels": None}).status == 200
    assert (given.get(X).json["labels"], "labels" in given.get(META).json) == ({"version": "1"}, False)


DEPRECATED: Final = {
    "effective": "2030-01-01T00:00:00Z",
    "removal": "2030-01-01T00:00:00.5Z",
    "alternative": "https://example.com/v2",
    "documentation": "/why",
}


@pytest.mark.parametrize("path", ["/dirs/d", META])
def test_c_com_04_to_06_deprecated(given: Client, path: str) -> None:
    assert given.put(path, {"deprecated": {}}).json["deprecated"] == {}
    assert given.patch(path, {"deprecated": DEPRECATED}).json["deprecated"] == DEPRECATED
    assert given.patch(path, {"deprecated": {"removal": "2020-01-01T00:00:00Z"}}).status == 200
    later = {"effective": "2030-01-01T01:00:00+01:00", "removal": "2030-01-01T00:00:00Z"}
    assert given.patch(path, {"deprecated": later}).json["deprecated"]["effective"] == "2030-01-01T00:00:00Z"
    for removal in ("2029-12-31T23:59:59.999Z", "2030-01-01T00:30:00+01:00"):
        reply = given.patch(path, {"deprecated": {**later, "removal": removal}})
        assert reply.error == (400, "invalid_attribute", path), removal
        assert reply.json["args"]["name"] == "deprecated.removal"
    half = {"effective": "2030-01-01T00:00:00.5Z", "removal": "2030-01-01T00:00:00Z"}
    assert given.patch(path, {"deprecated": half}).error[1] == "invalid_attribute"
    for name, value in (("effective", "soon"), ("removal", 5), ("alternative", "a b"), ("documentation", 5)):
        reply = given.patch(path, {"deprecated": {name: value}})
        assert reply.json["args"]["name"] == f"deprecated.{name}"
    for bad in (True, "yes", [], 5):
        assert given.patch(path, {"deprecated": bad}).error == (400, "invalid_attribute", path)
    assert "deprecated" not in given.patch(path, {"deprecated": None}).json


def test_c_com_04_where_nothing_is_deprecated(given: Client) -> None:
    for path, subject in (("/", "/"), (X, VERSION), (VERSION, VERSION)):
        reply = given.patch(path, {"deprecated": {}})
        assert reply.error == (400, "unknown_attribute", subject)
    assert f"{BASE}/dirs/d" == given.get("/dirs/d").json["self"]


@pytest.mark.parametrize("path", ["/dirs/d", X])
def test_texts_that_databases_have_no_room_for_in_their_keys(given: Client, path: str) -> None:
    for value in ("\0", "a\0b", "".join(chr(0x4E00 + each * 7919 % 20000) for each in range(1350))):
        sent = {"name": value, "labels": {"a": value}}
        assert given.put(path, sent | ({"format": value} if path == X else {})).status == 200
        shown = given.get(path).json
        assert (shown["name"], shown["labels"]["a"]) == (value, value)


def test_amb_18_values_that_differ_in_case(database: Database) -> None:
    colour = {
        "type": "string",
        "enum": ["Red", "blue"],
        "ifvalues": {"RED": {"siblingattributes": {"shade": {"type": "string"}}}},
    }
    registry = serve(database, {"groups": {"gs": {"singular": "g", "attributes": {"colour": colour}}}})
    for sent in ("Red", "red", "RED"):
        shown = registry.put("/gs/a", {"colour": sent, "shade": "dark"}).json
        assert (shown["colour"], shown["shade"]) == (sent, "dark")
    assert registry.put("/gs/a", {"colour": "BLUE", "shade": "dark"}).error[1] == "unknown_attribute"
    assert registry.put("/gs/a", {"colour": "green"}).error == (400, "invalid_attribute", "/gs/a")
