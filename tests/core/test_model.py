"""The model: its language, the full model, includes and imports.

Spec: core/model.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.core.model_change import read_model
from wirebook.core.model_language import VERSION_MODES
from wirebook.httpapi.setup import builtin_model
from wirebook.problems.xregistry import Refused

TEXTS = "spec/xregistry-1.0-rc4"


def no_fetch(address: str) -> Any:
    raise ValueError(f"'{address}' is not there")


def read(source: Any, fetch: Any = no_fetch) -> Any:
    return read_model(source, fetch, VERSION_MODES)


def with_attribute(**aspects: Any) -> dict[str, Any]:
    return {"groups": {"dirs": {"singular": "dir", "attributes": {"x": aspects}, "resources": {}}}}


def with_resource(**aspects: Any) -> dict[str, Any]:
    return {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", **aspects}}}}}


def test_the_full_model_is_that_of_the_text(shared: Path) -> None:
    folder = shared / TEXTS / "core"
    source, full = (json.loads((folder / f"sample-model{end}.json").read_text()) for end in ("", "-full"))
    assert json.dumps(read(source).model.full) == json.dumps(full)


@pytest.mark.parametrize("name", ["endpoint", "message", "schema", "cloudevents"])
def test_published_models_are_read_as_they_are(shared: Path, name: str) -> None:
    folder = shared / TEXTS

    def fetch(address: str) -> Any:
        return json.loads((folder / address.removeprefix("file:///texts/")).read_text())

    source = json.loads((folder / name / "model.json").read_text())
    from_here = json.loads(json.dumps(source).replace('"../', '"file:///texts/'))
    assert read(from_here, fetch).model.groups


def test_the_built_in_model_shares_messages_with_endpoints() -> None:
    model = read(builtin_model()).model
    assert list(model.groups) == ["endpoints", "messagegroups", "schemagroups"]
    assert model.groups["endpoints"].resources["messages"].home == ("messagegroups", "messages")


FAULTS: dict[str, tuple[Any, str]] = {
    "c_mod_06_name": (with_attribute(type="string", name="y"), "model_error"),
    "c_mod_07_aspect": (with_attribute(type="string", foo=1), "model_error"),
    "c_mod_08_type": (with_attribute(type="String"), "model_error"),
    "c_mod_09_item": (with_attribute(type="array"), "model_error"),
    "c_mod_09_item_of_scalar": (with_attribute(type="string", item={"type": "string"}), "model_error"),
    "c_mod_10_attributes": (with_attribute(type="map", item={"type": "string"}, attributes={}), "model_error"),
    "c_mod_11_target": (with_attribute(type="string", target="/dirs"), "model_error"),
    "c_mod_13_charset": (with_attribute(type="object", namecharset="loose"), "model_error"),
    "c_mod_15_enum": (with_attribute(type="map", item={"type": "any"}, enum=[1]), "model_error"),
    "c_mod_15_enum_of_type": (with_attribute(type="integer", enum=["1"]), "model_error"),
    "c_mod_17_wildcard": ({"attributes": {"*": {"type": "any", "required": True}}}, "model_error"),
    "c_mod_18_immutable": (with_attribute(type="string", immutable=True), "model_error"),
    "c_mod_19_required": (with_attribute(type="string", default="a"), "model_required_true"),
    "c_mod_20_scalar": (with_attribute(type="any", default="a", required=True), "model_scalar_default"),
    "c_mod_21_enum": (with_attribute(type="string", default="a", required=True, enum=["b"]), "model_error"),
    "c_mod_23_group": (with_attribute(type="string", matchversions=True), "model_error"),
    "c_mod_25_key": (with_attribute(type="string", ifvalues={"^a": {"siblingattributes": {}}}), "model_error"),
    "c_mod_25_twice": (with_attribute(type="string", ifvalues={"a": {}, "A": {}}), "model_error"),
    "c_mod_26_clash": (
        with_attribute(type="string", ifvalues={"a": {"siblingattributes": {"x": {"type": "string"}}}}),
        "model_error",
    ),
    "c_mod_28_twice": ({"groups": {"dirs": {"singular": "dirs"}}}, "model_error"),
    "c_mod_28_long": ({"groups": {"d" * 58: {"singular": "d"}}}, "model_error"),
    "c_mod_33_typemap": (with_resource(typemap={"a/b": "text"}), "model_error"),
    "c_mod_34_resource": (with_resource(resourceattributes={"x": {"type": "string"}}), "model_error"),
    "c_mod_34_version": (with_resource(attributes={"meta": {"type": "string"}}), "model_error"),
    "c_mod_35_type": (with_resource(attributes={"name": {"type": "integer"}}), "model_error"),
    "c_mod_35_required": (with_resource(metaattributes={"epoch": {"required": False}}), "model_error"),
    "c_mod_47_rc2": (with_resource(setdefaultversionsticky=True), "model_error"),
    "c_att_01_name": ({"attributes": {"A": {"type": "string"}}}, "invalid_attribute"),
    "c_ver_15_root": (with_resource(versionmode="createdat", singleversionroot=False), "model_error"),
    "c_ver_16_mode": (with_resource(versionmode="newest"), "model_error"),
    "c_val_16_format": (with_resource(validatecompatibility=True), "model_error"),
    "not_an_object": ([], "model_error"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refused(name: str) -> None:
    source, code = FAULTS[name]
    with pytest.raises(Refused) as raised:
        read(source)
    assert (raised.value.type.name, raised.value.subject) == (code, "/model")


def test_c_mod_41_what_is_local_and_what_is_earlier_wins() -> None:
    documents = {
        "http://h/a": {"x": {"type": "string", "description": "a"}, "y": {"type": "string"}},
        "http://h/b": {"x": {"type": "integer"}, "z": {"$include": "c#/inner"}},
        "http://h/c": {"inner": {"type": "boolean"}},
    }
    source = {"attributes": {"$includes": ["http://h/a", "http://h/b"], "y": {"type": "uinteger"}}}
    attributes = read(source, documents.__getitem__).model.attributes
    assert [attributes[name].type for name in "xyz"] == ["string", "uinteger", "boolean"]


@pytest.mark.parametrize(
    "source",
    [
        {"$include": "http://h/a", "$includes": ["http://h/b"]},
        {"attributes": {"$include": "http://h/loop"}},
        {"attributes": {"$include": "http://h/gone"}},
        {"attributes": {"$include": "http://h/loop#/nothing"}},
    ],
)
def test_c_mod_42_includes_that_cannot_be(source: Any) -> None:
    def fetch(address: str) -> Any:
        if address == "http://h/gone":
            raise OSError("gone")
        return {"$include": address}

    with pytest.raises(Refused, match="model is refused"):
        read(source, fetch)


@pytest.mark.parametrize(
    "imports",
    [["/dirs/files"], ["/nope/files"], ["/boxes/nope"], ["boxes/files"], ["/boxes/files", "/boxes/files"]],
)
def test_c_mod_38_imports_that_cannot_be(imports: list[str]) -> None:
    groups = {
        "dirs": {"singular": "dir", "ximportresources": imports},
        "boxes": {"singular": "box", "resources": {"files": {"singular": "file"}}},
    }
    with pytest.raises(Refused, match="model is refused"):
        read({"groups": groups})
