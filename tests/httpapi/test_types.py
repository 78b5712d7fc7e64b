"""Data types: valid and invalid values at every level. Rows TYP of the checklist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client, serve
from wirebook.storage.database import Database

SCALARS: Final = (
    "boolean", "decimal", "integer", "string", "timestamp", "uinteger", "uri", "uriabsolute", "urirelative",
    "uritemplate", "url", "urlabsolute", "urlrelative", "xid", "xidtype",
)  # fmt: skip
TEXT: Final = {"type": "string"}
ATTRIBUTES: Final[dict[str, Any]] = {f"x{type_}": {"type": type_} for type_ in SCALARS} | {
    "xany": {"type": "any"},
    "xarray": {"type": "array", "item": {"type": "integer"}},
    "xarrays": {"type": "array", "item": {"type": "array", "item": {"type": "integer"}}},
    "xanys": {"type": "array", "item": {"type": "any"}},
    "xmap": {"type": "map", "item": TEXT},
    "xmaps": {"type": "map", "item": {"type": "map", "item": {"type": "uinteger"}}},
    "xobject": {"type": "object", "attributes": {"a": TEXT, "n": {"type": "integer"}}},
    "xobjects": {"type": "map", "item": {"type": "object", "attributes": {"at": {"type": "timestamp"}}}},
    "xopen": {"type": "object", "attributes": {"a": TEXT, "*": {"type": "integer"}}},
    "xwide": {"type": "object", "namecharset": "extended", "attributes": {"a-b": TEXT, "*": TEXT}},
    "xdeep": {
        "type": "array",
        "item": {"type": "object", "attributes": {"m": {"type": "map", "item": {"type": "boolean"}}}},
    },
}
_VERSIONS: Final = {"attributes": ATTRIBUTES, "metaattributes": ATTRIBUTES}
MODEL: Final[dict[str, Any]] = {
    "attributes": ATTRIBUTES,
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": ATTRIBUTES,
            "resources": {
                "datas": {"singular": "data", "hasdocument": False, **_VERSIONS},
                "files": {"singular": "file", **_VERSIONS},
            },
        },
    },
}
X: Final = "/dirs/d/datas/x"
VERSION: Final = f"{X}/versions/1"


@pytest.fixture
def typed(database: Database) -> Client:
    """A registry in which every level has attributes of every type, and one entity of each."""
    client = serve(database, MODEL)
    assert client.put(X, {}).status == 201
    return client


Place = tuple[str, str, str, Callable[[dict[str, Any]], Any]]
"""Where members may be sent: method, path, the xid that errors name, and the body."""

ENTITIES: Final[list[Place]] = [
    (method, path, subject, lambda members: members)
    for path, subject in (("/", "/"), ("/dirs/d", "/dirs/d"), (X, VERSION), (VERSION, VERSION), (f"{X}/meta",) * 2)
    for method in ("PUT", "PATCH")
]
NESTED: Final[list[Place]] = [
    ("POST", X, f"{X}/versions/2", lambda members: members),
    ("POST", "/", "/dirs/d", lambda members: {"dirs": {"d": members}}),
    ("POST", "/dirs", "/dirs/new", lambda members: {"new": members}),
    ("PATCH", "/dirs", "/dirs/d", lambda members: {"d": members}),
    ("POST", "/dirs/d", VERSION, lambda members: {"datas": {"x": members}}),
    ("PATCH", "/dirs/d/datas", f"{X}/meta", lambda members: {"x": {"meta": members}}),
    ("POST", f"{X}/versions", f"{X}/versions/v", lambda members: {"v": members}),
    ("PATCH", f"{X}/versions", VERSION, lambda members: {"1": members}),
    ("PUT", X, f"{X}/meta", lambda members: {"meta": members}),
    ("PUT", X, f"{X}/versions/v", lambda members: {"versions": {"v": members}}),
    ("PATCH", "/dirs/d", f"{X}/meta", lambda members: {"datas": {"x": {"meta": members}}}),
    ("PUT", "/", f"{X}/versions/v", lambda members: {"dirs": {"d": {"datas": {"x": {"versions": {"v": members}}}}}}),
]

BAD_TIMES: Final = [
    "", "2024-01-01", "2024-01-01 00:00:00Z", "2024-01-01 00:00:00", "2024-01-01T00:00", "2024-01-01T00:00Z",
    "2024-01-01T00:00:00,5Z",
    "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:60Z",
    "2024-01-01T00:00:00+0200", "2024-01-01T00:00:00+25:00", "2024-01-01T00:00:00.Z", "9999-12-31T23:59:59-01:00",
    "0000-01-01T00:00:00+01:00", " 2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z\n", "٢٠٢٤-01-01T00:00:00Z", 5, True,
]  # fmt: skip
ABSOLUTE: Final = ["https://example.com/a?b=c", "urn:isbn:1", "mailto:a@example.com", "http://[::1]:8080/a%20b"]
RELATIVE: Final = ["a", "/a/b", "../a", "//host/a", "?q", "#f", "./a:b"]
NO_REFERENCE: Final = ["", "a b", "%zz", "{", "<a>", "a\\b", 'a"b', "a\nb", 5, True, [], {}]


ILLEGAL: Final[dict[str, list[Any]]] = {
    "xboolean": ["true", "", 0, 1, [], {}],
    "xdecimal": ["1", "", True, [], {}],
    "xinteger": [1.5, "1", True, [], {}, 10**4200],
    "xuinteger": [-1, -1.0, 0.5, "1", False],
    "xstring": [5, True, 1.5, [], {}, "a" * (4097 - len("xstring")), "é" * 2045],
    "xtimestamp": BAD_TIMES,
    "xuri": NO_REFERENCE,
    "xurl": NO_REFERENCE,
    "xuriabsolute": [*NO_REFERENCE, *RELATIVE],
    "xurlabsolute": [*NO_REFERENCE, *RELATIVE],
    "xurirelative": [*NO_REFERENCE, *ABSOLUTE],
    "xurlrelative": [*NO_REFERENCE, *ABSOLUTE],
    "xuritemplate": ["{", "}", "{}", "{a", "a}", "{a{b}}", "{a b}", "{=a}", "{|a}", "{%zz}", "{a..b}", "{a:0}", 5],
    "xxid": ["", "x", "dirs/d", "/dirs", "/nope/x", "/dirs/d/datas", "/dirs/d/nope/x", f"{X}/versions", "/dirs/a b",
             f"{X}/nope", f"{X}/versions/1/y", "/dirs/d/", "//", "/dirs/-a", f"{X}$details", f"/dirs/{'a' * 129}", 5],
    "xxidtype": ["", "dirs", "/dir", "/Dirs", "/dirs/", "/dirs/data", "/dirs/datas/meta", "/dirs/d", "/nope", 5],
    "xmap": [[], "a", 5, {"A": ""}, {"": ""}, {"-a": ""}, {"a b": ""}, {"a" * 64: ""}, {"é": ""}, {"k": "v" * 4097}],
}  # fmt: skip

AT_A_PLACE: Final[list[tuple[str, Any, str]]] = [
    ("xarray", [1, "2"], "xarray[1]"),
    ("xarray", [1, None], "xarray[1]"),
    ("xarray", {}, "xarray"),
    ("xarrays", [[1], [None]], "xarrays[1][0]"),
    ("xarrays", [None], "xarrays[0]"),
    ("xarrays", [1], "xarrays[0]"),
    ("xanys", [1, None], "xanys[1]"),
    ("xmap", {"a": 5}, "xmap.a"),
    ("xmaps", {"a": {"b": -1}}, "xmaps.a.b"),
    ("xmaps", {"a": {"B": 1}}, "xmaps.a.B"),
    ("xobject", {"a": 5}, "xobject.a"),
    ("xobject", [], "xobject"),
    ("xobject", {"n": 1.5}, "xobject.n"),
    ("xobject", {"a": "b" * 4096}, "xobject.a"),
    ("xobjects", {"k": {"at": "now"}}, "xobjects.k.at"),
    ("xobjects", {"k": 5}, "xobjects.k"),
    ("xopen", {"z": "1"}, "xopen.z"),
    ("xopen", {"Z": 1}, "xopen.Z"),
    ("xwide", {"-a": ""}, "xwide.-a"),
    ("xdeep", [{}, {"m": {"a": "true"}}], "xdeep[1].m.a"),
    ("labels", {"a": 5}, "labels.a"),
    ("labels", {"A": "b"}, "labels.A"),
    ("labels", {"a.b": 5}, "labels['a.b']"),
    ("labels", {"a-b:c": 5}, "labels.a-b:c"),
    ("xmaps", {"a.b": {"c.d": -1}}, "xmaps['a.b']['c.d']"),
    ("xobjects", {"k.l": {"at": "now"}}, "xobjects['k.l'].at"),
    ("xwide", {"a.b": 5}, "xwide['a.b']"),
    ("labels", [], "labels"),
]


def named(places: list[Place]) -> list[Any]:
    """Places as parameters of a test."""
    return [pytest.param(*place, id=f"{place[0]} {place[1]}") for place in places]


@pytest.mark.parametrize(("method", "path", "subject", "body"), named(ENTITIES[::2]))
def test_c_typ_01_to_03_05_07_to_12_c_att_09_what_each_type_may_not_be(
    typed: Client, method: str, path: str, subject: str, body: Callable[[dict[str, Any]], Any]
) -> None:
    before = typed.get("/export").body
    for name, values in ILLEGAL.items():
        for value in values:
            reply = typed.send(method, path, body({name: value}))
            assert reply.error == (400, "invalid_attribute", subject), (name, value)
            key = next(iter(value), None) if isinstance(value, dict) else None
            place = name if key is None else f"{name}['{key}']" if key in ("", "a b") else f"{name}.{key}"
            assert reply.json["args"]["name"] == place, (name, value)
    assert typed.get("/export").body == before


@pytest.mark.parametrize(("method", "path", "subject", "body"), named(ENTITIES + NESTED))
def test_c_typ_11_to_14_c_att_09_faults_inside_values(
    typed: Client, method: str, path: str, subject: str, body: Callable[[dict[str, Any]], Any]
) -> None:
    before = typed.get("/export").body
    for name, value, place in AT_A_PLACE:
        reply = typed.send(method, path, body({name: value}))
        assert reply.error == (400, "invalid_attribute", subject), (name, value)
        assert reply.json["args"]["name"] == place
    for name, value, place in (
        ("xobject", {"a": "b", "q": 1}, "xobject.q"),
        ("xobject", {"Q": 1}, "xobject.Q"),
        ("xobjects", {"k": {"q": None}}, "xobjects.k.q"),
        ("xnope", 1, "xnope"),
        ("xnope", None, "xnope"),
    ):
        reply = typed.send(method, path, body({name: value}))
        assert reply.error == (400, "unknown_attribute", subject), (name, value)
        assert reply.json["args"]["name"] == place
    assert typed.get("/export").body == before


HEADERS: Final[list[tuple[str, str, Any]]] = [
    ("xboolean", "true", True),
    ("xinteger", "-5", -5),
    ("xdecimal", "1.5", 1.5),
    ("xuinteger", "7", 7),
    ("xstring", "5", "5"),
    ("xtimestamp", "2024-01-01T02:00:00+02:00", "2024-01-01T00:00:00Z"),
    ("xtimestamp", "2024-01-01T02:00:00", "2024-01-01T02:00:00Z"),
    ("createdat", "2024-01-01T02:00:00", "2024-01-01T02:00:00Z"),
    ("xany", "5", "5"),
    ("xany", "true", "true"),
    ("xmap.k", "5", "5"),
]


def test_c_typ_16_c_typ_01_values_in_headers(typed: Client) -> None:
    path = "/dirs/d/files/f"
    for name, text, stored in HEADERS:
        assert typed.put(path, b"", **{f"xregistry_{name}": text}).status in (200, 201), name
        details = typed.get(f"{path}$details").json
        attribute, _, key = name.partition(".")
        assert (details[attribute][key] if key else details[attribute]) == stored, name
    for name, text in (("xboolean", "True"), ("xboolean", "1"), ("xinteger", "1.5"), ("xuinteger", "-1"),
                       ("xmap.A b", "x")):  # fmt: skip
        reply = typed.put(path, b"", **{f"xregistry_{name}": text})
        assert reply.error == (400, "invalid_attribute", f"{path}/versions/1"), name
    for name, text in (("xarray", "1"), ("xobject", "{}")):
        reply = typed.put(path, b"", **{f"xregistry_{name}": text})
        assert reply.error == (400, "extra_xregistry_header", path), name


def test_timestamps_without_an_offset_are_utc_everywhere(typed: Client) -> None:
    time, stored = "2024-01-01T01:02:03", "2024-01-01T01:02:03Z"
    times = {"createdat": time, "modifiedat": time}
    deprecated = {"deprecated": {"effective": time, "removal": "2024-01-01T02:02:03+01:00"}}
    for path in ("/", "/dirs/d", X, f"{X}/versions/new", f"{X}/meta"):
        entity = typed.put(path, {**times, **({"name": "n"} if "meta" not in path else deprecated)}).json
        assert (entity["createdat"], entity["modifiedat"]) == (stored, stored), path
        assert entity.get("deprecated", {"effective": stored})["effective"] == stored
    late = {"deprecated": {"effective": time, "removal": "2024-01-01T01:02:02"}}
    assert typed.put("/dirs/d", late).error == (400, "invalid_attribute", "/dirs/d")
    for filter_ in (f"createdat={time}", "createdat<2024-01-01T01:02:03.1", f"createdat>={time}"):
        assert typed.get(f"/dirs/d/datas?filter={filter_}").json.keys() == {"x"}, filter_
    assert typed.get(f"/dirs/d/datas?filter=createdat>{time}").json == {}


def test_timestamps_of_a_model_are_stored_in_utc(registry: Client) -> None:
    when = {"type": "timestamp", "required": True, "default": "2024-01-01T01:02:03", "enum": ["2024-01-01T01:02:03"]}
    model = {"groups": {"dirs": {"singular": "dir", "attributes": {"when": when}}}}
    assert registry.put("/modelsource", model).status == 200
    assert registry.put("/dirs/d", {}).json["when"] == "2024-01-01T01:02:03Z"
    assert registry.put("/dirs/d", {"when": "2024-01-01T02:02:03+01:00"}).status == 200
    assert registry.get("/model").json["groups"]["dirs"]["attributes"]["when"]["default"] == "2024-01-01T01:02:03Z"
