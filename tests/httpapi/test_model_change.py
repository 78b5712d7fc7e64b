"""Model changes in a registry with entities: they comply, are rewritten, or the model is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.httpapi.conftest import Client, Reply
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database
from wirebook.storage.load import Loader

STRING: dict[str, Any] = {"type": "string"}
F = "/dirs/d/files/f"
META = f"{F}/meta"
Source = dict[str, Any]


def source(group: Source | None = None, registry: Source | None = None, **resource: Any) -> Source:
    """A model with one Group type and one Resource type in it. `group` are aspects of the one, `resource` of the
    other, `registry` attributes of the Registry."""
    files = {"singular": "file", "hasdocument": False, **resource}
    dirs = {"singular": "dir", "resources": {"files": files}, **(group or {})}
    return {"groups": {"dirs": dirs}, **({"attributes": registry} if registry else {})}


@pytest.fixture
def client(database: Database) -> Client:
    make_registry(database, "test", source(), OFFER)
    return Client(make_service(database, SchemaValidator(), OFFER), database)


def put(client: Client, model: Source) -> Reply:
    reply = client.put("/modelsource", model)
    assert reply.status == 200, reply.body
    return reply


def state(client: Client) -> list[bytes]:
    return [client.get(path).body for path in ("/", "/?inline=*,model,modelsource", "/capabilities", "/export")]


def refused(client: Client, model: Source) -> tuple[str, str | None]:
    """The error of a model, on both ways to send it, neither of which changes anything: its name and its subject."""
    before = state(client)
    status, name, subject = client.put("/modelsource", model).error
    assert status == 400
    assert client.patch("/", {"modelsource": model}).error == (400, name, subject)
    assert state(client) == before
    return name, subject


def versions(client: Client, *ids: str, **attributes: Any) -> None:
    for id_ in ids:
        assert client.put(f"{F}/versions/{id_}", attributes).status == 201


def epochs(client: Client) -> list[int]:
    entity = client.get("/dirs?inline").json["d"]
    resource = entity["files"]["f"]
    return [
        entity["epoch"],
        resource["meta"]["epoch"],
        *(version["epoch"] for version in resource["versions"].values()),
    ]


def refused_on_path(client: Client, model: Source) -> str:
    """The error where the Registry itself does not comply: a PATCH of it gives another, of the attribute."""
    before = state(client)
    name = client.put("/modelsource", model).error[1]
    assert state(client) == before
    return name


# -- attributes -----------------------------------------------------------------------------------------------------


def test_attributes_are_shown_in_the_order_of_the_new_model(client: Client) -> None:
    any_ = {"*": {"type": "any"}}
    put(client, source({"attributes": any_}, attributes=any_))
    own = {"a": 1, "b": {"z": 1, "y": 2}, "c": 3}
    client.put("/dirs/d", own)
    client.put(F, own)
    before = epochs(client)
    named = {"c": {"type": "any"}, "b": {"type": "object", "attributes": {"z": {"type": "any"}, **any_}}, **any_}
    put(client, source({"attributes": named}, attributes=named))
    for path in ("/dirs/d", F):
        attributes = {name: value for name, value in client.get(path).json.items() if name in own}
        assert list(attributes) == ["b", "c", "a"]
    assert json.dumps(client.get(F).json["b"]) == '{"z": 1, "y": 2}'
    assert epochs(client) == before


def attributes(level: str, own: Source) -> Source:
    """A model with attributes at one level."""
    if level == "registry":
        return source(registry=own)
    return source({"attributes": own}) if level == "group" else source(**{level: own})


INTEGER: Source = {"type": "integer"}
REQUIRED: Source = {**STRING, "required": True}


def test_new_model_name_in_use_by_an_extension_is_rejected(client: Client) -> None:
    """An extension that nothing named, and a type that is called so."""
    any_ = {"*": {"type": "any"}}
    put(client, source({"attributes": any_}, any_, attributes=any_))
    client.patch("/", {"boxesurl": "a"})
    client.put("/dirs/d", {"ones": "a"})
    client.put(F, {"file": "a"})
    boxes = source({"attributes": any_}, any_, attributes=any_)
    boxes["groups"]["boxes"] = {"singular": "box"}
    assert refused_on_path(client, boxes) == "model_compliance_error"
    ones = source({"attributes": any_}, any_, attributes=any_)
    ones["groups"]["dirs"]["resources"]["ones"] = {"singular": "one"}
    assert refused(client, ones)[0] == "model_compliance_error"
    assert refused(client, source({"attributes": any_}, any_, attributes=any_, hasdocument=True))[0] == (
        "model_compliance_error"
    )


# -- types ------------------------------------------------------------------------------------------------------------


BARE = source(attributes={"x": STRING})


@pytest.mark.parametrize(
    ("model", "is_read"),
    [
        (BARE, False),
        (source({"description": "d"}, attributes={"x": {**STRING, "description": "d"}}), False),
        (source({"attributes": {"y": STRING}}, {"y": STRING}, attributes={"x": STRING, "y": INTEGER}), False),
        (source(attributes={"x": STRING, "*": {"type": "any"}}, metaattributes={"y": STRING}), False),
        (source(attributes={"x": STRING}, setversionid=False, typemap={"a/b": "json"}), False),
        (source(attributes={"x": STRING}, metaattributes={"y": {**STRING, "required": True, "default": "a"}}), True),
        (source({"attributes": {"dirid": {**REQUIRED, "enum": ["d"]}}}, attributes={"x": STRING}), True),
        (source(attributes={"x": {"type": "any"}}), True),
        (source(attributes={"x": STRING}, maxversions=5), True),
        (source({"constraints": {"files.x": {"enum": ["a"]}}}, attributes={"x": STRING}), True),
    ],
)  # fmt: skip
def test_model_change_loads_only_affected_entities(
    client: Client, monkeypatch: pytest.MonkeyPatch, model: Source, is_read: bool
) -> None:
    put(client, BARE)
    client.put(F, {"x": "a"})
    before = client.get("/dirs?inline").json
    asked: list[Any] = []
    everything = Loader.everything
    monkeypatch.setattr(Loader, "everything", lambda *args: asked.append(args[1]) or everything(*args))
    put(client, model)
    assert asked == ([["dirs"]] if is_read else [])
    after = client.get("/dirs?inline").json
    for dirs in (before, after):
        dirs["d"]["files"]["f"]["meta"].pop("y", None)
    assert after == before


def test_new_type_leaves_other_types_unchanged(client: Client) -> None:
    versions(client, "v1")
    before = client.get("/dirs?inline").body
    more = source()
    more["groups"]["boxes"] = {"singular": "box", "ximportresources": ["/dirs/files"]}
    more["groups"]["dirs"]["resources"]["others"] = {"singular": "other"}
    put(client, more)
    after = client.get("/dirs?inline").json
    assert after["d"]["otherscount"] == 0
    for name in ("others", "otherscount", "othersurl"):
        del after["d"][name]
    assert after == json.loads(before)
    assert client.put("/boxes/b/files/f", {"meta": {"xref": F}}).status == 201


# -- Versions ---------------------------------------------------------------------------------------------------------


def test_maxversions_lowered_deletes_the_oldest(client: Client) -> None:
    versions(client, "v1", "v2", "v3", "v4")
    client.patch(META, {"defaultversionid": "v1", "defaultversionsticky": True})
    meta = client.get(META).json["epoch"]
    put(client, source(maxversions=2))
    resource = client.get(f"{F}?inline=versions,meta").json
    assert (resource["versions"].keys(), resource["versionscount"]) == ({"v1", "v4"}, 2)
    assert (resource["meta"]["defaultversionid"], resource["meta"]["epoch"]) == ("v1", meta + 1)
    assert resource["versions"]["v4"]["ancestorid"] == "v4"
    assert refused(client, source(maxversions=1)) == ("setdefaultversionsticky_false", F)
    client.patch(META, {"defaultversionsticky": False})
    put(client, source(maxversions=1))
    resource = client.get(f"{F}?inline=versions,meta").json
    assert (list(resource["versions"]), resource["versionid"]) == (["v4"], "v4")
    assert resource["meta"]["defaultversionid"] == "v4"
    put(client, source(maxversions=0))
    versions(client, "v5", "v6")
    assert client.get(F).json["versionscount"] == 3


def test_new_versionmode_reorders_versions(client: Client) -> None:
    for id_, year in (("a", 2003), ("b", 2001), ("c", 2002)):
        client.put(f"{F}/versions/{id_}", {"createdat": f"{year}-01-01T00:00:00Z"})
    assert client.get(F).json["versionid"] == "c"
    before = client.get(f"{F}/versions").json
    put(client, source(versionmode="createdat"))
    versions = client.get(f"{F}/versions").json
    assert {id_: entity["ancestorid"] for id_, entity in versions.items()} == {"a": "c", "b": "b", "c": "b"}
    assert {id_: entity["epoch"] - before[id_]["epoch"] for id_, entity in versions.items()} == {"a": 1, "b": 1, "c": 0}
    resource = client.get(f"{F}?inline=meta").json
    assert (resource["versionid"], resource["meta"]["defaultversionid"], versions["a"]["isdefault"]) == ("a", "a", True)
    put(client, source(versionmode="manual"))
    assert client.get(f"{F}/versions").json == versions


def test_new_versionmode_keeps_a_sticky_default(client: Client) -> None:
    for id_, year in (("a", 2003), ("b", 2001)):
        client.put(f"{F}/versions/{id_}", {"createdat": f"{year}-01-01T00:00:00Z"})
    client.patch(META, {"defaultversionsticky": True, "defaultversionid": "b"})
    put(client, source(versionmode="semver"))
    assert client.get(F).json["versionid"] == "b"


def test_singleversionroot_with_two_roots_is_rejected(client: Client) -> None:
    versions(client, "v1")
    client.put(f"{F}/versions/v2", {"ancestorid": "v2"})
    assert refused(client, source(singleversionroot=True)) == ("multiple_roots", F)
    client.patch(f"{F}/versions/v2", {"ancestorid": "v1"})
    put(client, source(singleversionroot=True))
    assert client.put(f"{F}/versions/v3", {"ancestorid": "v3"}).error[1] == "multiple_roots"


def test_new_matchversions_is_checked_at_once(client: Client) -> None:
    put(client, source(attributes={"x": STRING}))
    versions(client, "v1", x="a")
    versions(client, "v2", x="b")
    shared = {"x": {**STRING, "matchversions": True}}
    assert refused(client, source(attributes=shared)) == ("mismatched_version_attribute", F)
    client.patch(f"{F}/versions/v2", {"x": "a"})
    put(client, source(attributes=shared))


def test_setversionid_applies_to_new_versions(client: Client) -> None:
    versions(client, "v1")
    put(client, source(setversionid=False))
    assert client.patch(f"{F}/versions/v1", {"name": "n"}).status == 200
    assert client.put(f"{F}/versions/v2", {}).error[1] == "versionid_not_allowed"


# -- validation -------------------------------------------------------------------------------------------------------


VALIDATED: Source = {"hasdocument": True, "validateformat": True}
V1, V2 = f"{F}/versions/v1", f"{F}/versions/v2"


def validation_results(client: Client, path: str = V1) -> Source:
    details = client.get(f"{path}$details").json
    return {name: value for name, value in details.items() if "validated" in name and "reason" not in name}


def test_compatibility_can_be_enabled_and_disabled(client: Client) -> None:
    put(client, source(**VALIDATED))
    client.put(f"{V1}$details", {"format": "Avro/1.9", "file": {"type": "int"}})
    client.put(f"{V2}$details", {"format": "Avro/1.9", "file": {"type": "string"}})
    client.patch(META, {"compatibility": "backward"})
    assert "compatibilityvalidated" not in validation_results(client)
    both = source(**VALIDATED, validatecompatibility=True)
    assert refused(client, both) == ("compatibility_violation", F)
    client.put(f"{V2}$details", {"format": "Avro/1.9", "file": {"type": "long"}})
    put(client, both)
    assert validation_results(client, V2) == {"formatvalidated": True, "compatibilityvalidated": True}
    put(client, source(**VALIDATED))
    assert validation_results(client, V2) == {"formatvalidated": True}


# -- constraints and cross-references ---------------------------------------------------------------------------------


def test_new_constraints_are_checked_at_once(client: Client) -> None:
    attributes = {"x": STRING}
    put(client, source({"attributes": attributes}, attributes=attributes))
    client.put("/dirs/d", {"x": "a"})
    client.put(F, {"x": "b"})
    for constraint in ({"enum": ["a"]}, {"equals": "x"}):
        model = source({"attributes": attributes, "constraints": {"files.x": constraint}}, attributes=attributes)
        assert refused(client, model) == ("constraint_failure", F)
        client.put(F, {"x": "a"})
        put(client, model)
        put(client, source({"attributes": attributes}, attributes=attributes))
        client.put(F, {"x": "b"})


def test_group_constraints_must_fit_the_new_model(client: Client) -> None:
    put(client, source(attributes={"x": STRING}))
    client.put("/dirs/d", {"constraints": {"files.x": {"enum": ["a"]}}})
    assert refused(client, source()) == ("model_compliance_error", "/model")
    assert refused(client, source(attributes={"x": INTEGER})) == ("model_compliance_error", "/model")


def shared(boxes: Source) -> Source:
    model = source(attributes={"x": STRING})
    model["groups"]["boxes"] = {"singular": "box", **boxes}
    return model


# -- with the Registry ------------------------------------------------------------------------------------------------


def test_model_and_entities_can_change_in_one_request(client: Client) -> None:
    """What the model rewrites, and what the request writes besides."""
    versions(client, "v1", "v2")
    client.put("/dirs/e/files/g", {})
    one = {"x": {**STRING, "required": True, "default": "one"}, "r": STRING}
    model = source({"attributes": {"r": REQUIRED}}, {"r": REQUIRED}, attributes=one, maxversions=1)
    assert client.patch("/", {"modelsource": model}).error[0] == 400
    groups = {"d": {"r": "d", "files": {"f": {"r": "f"}}}, "e": {"r": "e"}}
    reply = client.patch("/", {"modelsource": model, "r": "root", "dirs": groups})
    assert (reply.status, reply.json["r"]) == (200, "root")
    stored = client.get("/dirs?inline").json
    assert [stored[id_]["r"] for id_ in "de"] == ["d", "e"]
    assert (stored["d"]["files"]["f"]["r"], stored["d"]["files"]["f"]["x"]) == ("f", "one")
    assert (stored["e"]["files"]["g"]["x"], stored["d"]["files"]["f"]["versionscount"]) == ("one", 1)
    assert stored["d"]["files"]["f"]["versionid"] == "v2"


def test_rejected_model_rolls_back_the_capabilities(client: Client) -> None:
    versions(client, "v1")
    before = state(client)
    members = {"capabilities": {"flags": ["inline"]}, "modelsource": {}, "name": "n"}
    assert client.put("/", members).error[1] == "model_compliance_error"
    assert state(client) == before


def test_mutability_before_the_request_counts(client: Client) -> None:
    available = {"capabilities": {"mutable": True}, "entities": {"mutable": True}, "model": {"mutable": False}}
    members = {"capabilities": {"available": available}, "modelsource": source(registry={"x": STRING}), "x": "a"}
    assert client.patch("/", members).json["x"] == "a"
    assert client.patch("/", {"modelsource": source()}).error == (400, "not_available", "/modelsource")


@pytest.mark.parametrize("path", ["/modelsource", "/"])
def test_new_model_updates_the_registry_epoch(client: Client, path: str) -> None:
    before = client.get("/").json
    model = source({"description": "another"})
    assert (client.put(path, model) if path != "/" else client.patch("/", {"modelsource": model})).status == 200
    now = client.get("/").json
    assert (now["epoch"], now["modifiedat"] > before["modifiedat"]) == (before["epoch"] + 1, True)


# -- the state that a request leaves ----------------------------------------------------------------------------------


def write(client: Client, method: str, model: Source, **members: Any) -> Reply:
    return client.send(method, "/?inline=*", {"modelsource": model, **members})


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_flags_are_checked_against_the_model_of_the_request(client: Client, method: str) -> None:
    model = source()
    model["groups"]["boxes"] = {"singular": "box"}
    members = {"modelsource": model, "boxes": {"b": {"name": "n"}}}
    assert client.send(method, "/?inline=boxes&filter=boxes.name=n", members).json["boxes"].keys() == {"b"}
    before = state(client)
    faults = {"inline=none": "bad_inline", "filter=na*e": "bad_filter", "filter=boxes.name=x": "not_found"}
    for flag, code in faults.items():
        assert client.send(method, f"/?{flag}", {**members, "name": "x"}).error[1] == code
        assert state(client) == before
    client.delete("/boxes")
    reply = client.send(method, "/?inline=boxes", {"modelsource": source()})
    assert reply.error == (400, "bad_inline", "/")
    assert client.send(method, "/?inline=boxes", {"name": "n"}).status == 200
    assert client.send(method, "/?inline=boxes&ignore=modelsource", {"modelsource": source()}).status == 200
    assert client.put("/modelsource?inline=dirs", source()).status == 200
    assert client.put("/modelsource?inline=none", source()).error[1] == "bad_inline"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_model_with_data_that_replaces_noncompliant_entities_is_accepted(client: Client, method: str) -> None:
    old = {"x": STRING}
    put(client, source({"attributes": old}, old, attributes=old, metaattributes=old))
    x = {"x": "text"}
    client.put("/", {**x, "dirs": {"d": {**x, "files": {"f": {"meta": x, "versions": {"v1": x, "v2": x}}}}}})
    new = {"x": INTEGER}
    model = source({"attributes": new}, new, attributes=new, metaattributes=new)
    x = {"x": 5}
    versions_ = {"v1": x, "v2": x}
    before = state(client)
    for members in (
        {},
        x,
        {**x, "dirs": {"d": x}},
        {**x, "dirs": {"d": {**x, "files": {"f": {"versions": versions_}}}}},
        {**x, "dirs": {"d": {**x, "files": {"f": {"meta": x, "versions": {"v2": x}}}}}},
        {**x, "dirs": {"d": {"files": {"f": {"meta": x, "versions": versions_}}}}} if method == "PATCH" else x,
    ):
        assert write(client, method, model, **members).status == 400, members
        assert state(client) == before
    members = {**x, "dirs": {"d": {**x, "files": {"f": {"meta": x, "versions": versions_}}}}}
    reply = write(client, method, model, **members)
    assert reply.status == 200, reply.body
    group = client.get("/dirs?inline").json["d"]
    resource = group["files"]["f"]
    assert [entity["x"] for entity in (reply.json, group, resource["meta"], *resource["versions"].values())] == [5] * 5


def test_model_with_data_that_removes_attributes_is_accepted(client: Client) -> None:
    put(client, source({"attributes": {"x": STRING}}, attributes={"x": STRING}))
    client.put("/dirs/d", {"x": "a", "files": {"f": {"x": "a"}, "g": {}}})
    assert write(client, "PATCH", source(), dirs={"d": {"files": {"f": {"x": None}}}}).status == 400
    assert write(client, "PATCH", source({"attributes": {"x": STRING}}), dirs={"d": {"files": {"g": {}}}}).status == 400
    put(client, source({"attributes": {"x": STRING}}, attributes={"x": STRING}))
    assert write(client, "PUT", source(), dirs={"d": {"files": {"f": {}}}}).status == 200
    assert "x" not in client.get("/dirs/d").json


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_group_constraints_are_checked_as_the_request_leaves_them(client: Client, method: str) -> None:
    put(client, source(attributes={"x": STRING}))
    own = {"files.x": {"enum": ["a"]}}
    files = {"f": {"x": "a"}, "g": {"x": "a"}}
    client.put("/", {"dirs": {"d": {"constraints": own, "files": files}, "e": {"files": {"s": {"x": "c"}}}}})
    client.put("/dirs/d/files/s", {"meta": {"xref": "/dirs/d/files/f"}})
    narrow = source({"constraints": {"files.x": {"enum": ["b", "c"]}}}, attributes={"x": STRING})
    before = state(client)
    to_b, group = {"x": "b"}, {"constraints": {"files.x": {"enum": ["b"]}}}
    for dirs in (
        {},
        {"d": group},
        {"d": {"files": {"f": to_b, "g": to_b}, "constraints": own}},
        {"d": {**group, "files": {"f": to_b}}},
        {"d": {**group, "files": {"f": to_b, "g": {"x": "c"}}}},
    ):
        assert write(client, method, narrow, dirs=dirs).status == 400, dirs
        assert state(client) == before
    reply = write(client, method, narrow, dirs={"d": {**group, "files": {"f": to_b, "g": to_b}}})
    assert reply.status == 200, reply.body
    resources = client.get("/dirs/d/files").json
    assert {id_: entity["x"] for id_, entity in resources.items()} == {"f": "b", "g": "b", "s": "b"}
    assert write(client, method, source(attributes={"x": STRING}), dirs={"d": {"constraints": None}}).status == 200
    assert client.put(F, {"x": "z"}).status == 200


def test_group_constraints_on_a_removed_attribute_are_removed(client: Client) -> None:
    put(client, source(attributes={"x": STRING}))
    client.put("/dirs/d", {"constraints": {"files.x": {"enum": ["a"]}}})
    assert write(client, "PATCH", source(), dirs={"d": {}}).status == 400
    assert write(client, "PATCH", source(), dirs={"d": {"constraints": None}}).status == 200
    assert "constraints" not in client.get("/dirs/d").json


def test_unwritten_parts_of_written_entities_must_comply(client: Client) -> None:
    put(client, source(attributes={"x": STRING}))
    versions(client, "v1", "v2", x="a")
    lacks = source(attributes={"x": {**INTEGER}})
    assert write(client, "PATCH", lacks, dirs={"d": {"files": {"f": {"versions": {"v1": {"x": 1}}}}}}).status == 400
    assert write(client, "PATCH", lacks, dirs={"d": {"files": {"f": {"x": 1}}}}).status == 400
    default = source(attributes={"x": STRING, "y": {**STRING, "required": True, "default": "y"}})
    assert write(client, "PATCH", default, dirs={"d": {"files": {"f": {"versions": {"v1": {"x": "b"}}}}}}).status == 200
    stored = client.get(f"{F}/versions").json
    assert [(entity["x"], entity["y"], entity["epoch"]) for entity in stored.values()] == [("b", "y", 2), ("a", "y", 2)]


def test_document_of_a_replaced_version_goes_with_hasdocument(client: Client) -> None:
    put(client, source(hasdocument=True))
    client.put(F, b"document")
    assert write(client, "PATCH", source(), dirs={"d": {"files": {"f": {}}}}).error[1] == "hasdocument_violation"
    assert write(client, "PUT", source(), dirs={"d": {"files": {"f": {"name": "n"}}}}).status == 200
    put(client, source(hasdocument=True))
    assert client.get(F).body == b""


def test_names_of_new_types_replace_extensions(client: Client) -> None:
    put(client, source({"attributes": {"*": STRING}}, {"*": STRING}))
    client.put("/", {"boxes": "text", "dirs": {"d": {"notes": "text"}}})
    model = source()
    model["groups"]["dirs"]["resources"]["notes"] = {"singular": "note", "hasdocument": False}
    model["groups"]["boxes"] = {"singular": "box"}
    members = {"boxes": {"b": {}}, "dirs": {"d": {"notes": {"n": {}}}}}
    assert write(client, "PATCH", model, **members).error[1] == "model_compliance_error"
    registry = write(client, "PUT", model, **members).json
    assert (registry["boxes"].keys(), registry["dirs"]["d"]["notes"].keys()) == ({"b"}, {"n"})
    assert client.get("/export").json["dirs"]["d"]["notescount"] == 1
