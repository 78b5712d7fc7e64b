"""Attributes: names, nulls, defaults, required and server-assigned ones. Rows ATT and COM of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client, serve
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
def defaults_registry(database: Database) -> Client:
    """A registry with defaults and required attributes at every level, and one entity of each kind."""
    registry = serve(database, MODEL)
    assert registry.put(X, {}).status == 201
    return registry


# -- names and sizes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LEVELS)
def test_c_att_02_name_and_value_have_4096_bytes_at_most(defaults_registry: Client, path: str) -> None:
    most = "é" * ((4096 - len("xstr")) // 2)
    assert defaults_registry.patch(path, {"xstr": most}).json["xstr"] == most
    reply = defaults_registry.patch(path, {"xstr": f"{most}a"})
    assert reply.error == (400, "invalid_attribute", SUBJECTS[path])
    assert reply.json["args"]["name"] == "xstr"
    assert defaults_registry.get(path).json["xstr"] == most
    assert defaults_registry.patch(path, {"xstr": "\U0001f600" * 1024}).error == (
        400,
        "invalid_attribute",
        SUBJECTS[path],
    )
    assert defaults_registry.patch(path, {"labels": {"k": "v" * 4096}}).status == 200
    assert defaults_registry.patch(path, {"labels": {"k": "v" * 4097}}).json["args"]["name"] == "labels.k"
    assert defaults_registry.patch(path, {"xdef": 10**4091}).status == 200
    assert defaults_registry.patch(path, {"xdef": 10**4092}).error[1] == "invalid_attribute"


def test_c_att_08_names_of_the_text_are_taken(defaults_registry: Client) -> None:
    def refused(attributes: dict[str, Any], *where: str) -> tuple[int, str, str | None]:
        source: dict[str, Any] = {"groups": {"gs": {"singular": "g", "resources": {"rs": {"singular": "r"}}}}}
        at = source
        for step in where:
            at = at[step]
        at["attributes"] = attributes
        return defaults_registry.put("/modelsource", {"groups": {**MODEL["groups"], **source["groups"]}, **{
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


# -- values that are there or not ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["meta", "metaurl", "versions", "versionsurl", "versionscount"])
def test_attribute_of_the_resource_is_unknown_in_a_version(registry: Client, name: str) -> None:
    assert registry.put(VERSION, {}).status == 201
    reply = registry.put(VERSION, {name: "v"})
    assert (reply.error, reply.json["args"]) == ((400, "unknown_attribute", VERSION), {"name": name})


# -- several faults -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LEVELS)
def test_error_names_every_fault_of_the_attributes(defaults_registry: Client, path: str) -> None:
    before = defaults_registry.get(path).json
    faulty = {"xone": "three", "xnum": "1", "xobj": {"a": 5, "b": 6}, "labels": {"k": 1}, "other": 1, "Bad": 2}
    reply = defaults_registry.put(
        path, {**faulty, **{name: before[name] for name in ("xref", "defaultversionid") if name in before}}
    )
    assert reply.error == (400, "invalid_attribute", SUBJECTS[path])
    assert reply.json["args"] == {"name": "xone", "error_detail": "'three' is not one of: 'one', 'two'"}
    detail = reply.json["detail"]
    others = (
        "xnum: '1' is not an integer",
        "xobj.a: 5 is not a string",
        "xobj.b: Unknown: b; allowed: a, d",
        "labels.k: 1 is not a string",
        "Bad: 'Bad' is not a valid attribute name",
        "other: Unknown: other; allowed:",
    )
    assert detail.startswith(f"Also: {others[0]}; {others[1]}; ")
    assert [other for other in others if other not in detail] == []
    assert defaults_registry.get(path).json == before


def test_error_names_all_missing_attributes_and_other_faults(defaults_registry: Client) -> None:
    reply = defaults_registry.put("/reqs/r", {"xin": {}, "name": ""})
    assert reply.error == (400, "required_attribute_missing", "/reqs/r")
    assert reply.json["args"] == {"list": "xin.r, xreq"}
    assert reply.json["detail"] == "Also: name: it must not be empty; leave it out instead."
    reply = defaults_registry.put("/reqs/r", {"xin": {"r": "a"}, "xreq": "b", "x1": 1, "Xn": 2})
    assert reply.json["args"] == {"name": "Xn", "error_detail": "'Xn' is not a valid attribute name"}
    assert reply.json["detail"].startswith("Also: x1: Unknown: x1; allowed: ")


def test_error_names_twenty_other_faults_at_most(defaults_registry: Client) -> None:
    detail = defaults_registry.put("/dirs/d", {"labels": {f"k{number:02}": 1 for number in range(30)}}).json["detail"]
    assert detail.startswith("Also: labels.k01: 1 is not a string; labels.k02: ")
    assert detail.endswith("labels.k20: 1 is not a string; and 9 more.")


# -- name, documentation, labels, deprecated ----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/dirs/d", X])
def test_text_with_nul_or_of_great_length_is_stored(defaults_registry: Client, path: str) -> None:
    for value in ("\0", "a\0b", "".join(chr(0x4E00 + number * 7919 % 20000) for number in range(1350))):
        attributes = {"name": value, "labels": {"a": value}}
        assert defaults_registry.put(path, attributes | ({"format": value} if path == X else {})).status == 200
        stored = defaults_registry.get(path).json
        assert (stored["name"], stored["labels"]["a"]) == (value, value)
