"""Data types: valid values and their stored form.

Spec: core/spec.md#data-types.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.core.model.compiled import Attribute, Attributes
from wirebook.core.model.datatypes import check_members, check_value, fits_target
from wirebook.core.model.faults import MAX_FAULTS, InvalidValue

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/registry/datatypes.json").read_text())


def types(groups: str, resources: str | None) -> bool:
    return groups == "dirs" and resources in (None, "files")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['type']}-{str(vector['value'])[:40]}")
def test_scalar_value_is_stored_or_rejected(vector: dict[str, Any]) -> None:
    attribute = Attribute("x", vector["type"])
    if "error" in vector:
        with pytest.raises(InvalidValue) as raised:
            check_value(attribute, vector["value"], "x", types)
        assert raised.value.first.code == vector["error"]
    else:
        stored = check_value(attribute, vector["value"], "x", types)
        assert (stored, type(stored)) == (vector["stored"], type(vector["stored"]))


STRING, ANY = Attribute("", "string"), Attribute("*", "any")
INNER = Attributes({"a": Attribute("a", "string", required=True, default="d"), "n": Attribute("n", "integer")})
SIZE = Attributes({"size": Attribute("size", "uinteger", required=True)})
ATTRIBUTES = Attributes(
    {
        "array": Attribute("array", "array", item=Attribute("", "integer")),
        "deep": Attribute("deep", "array", item=Attribute("", "array", item=STRING)),
        "map": Attribute("map", "map", item=STRING),
        "object": Attribute("object", "object", attributes=INNER),
        "any": Attribute("any", "any"),
        "kind": Attribute("kind", "string", ifvalues={"big": SIZE}),
        "enum": Attribute("enum", "string", enum=("One", "Two")),
        "loose": Attribute("loose", "string", enum=("One",), strict=False),
        "server": Attribute("server", "url", readonly=True),
    }
)


@pytest.mark.parametrize(
    ("members", "stored"),
    [
        ({"array": [1, 2.0]}, {"array": [1, 2]}),
        ({"map": {"b": "2", "a": "1", "c": None}}, {"map": {"a": "1", "b": "2"}}),
        ({"object": {}}, {"object": {"a": "d"}}),
        ({"object": {"n": 1, "a": "x"}}, {"object": {"a": "x", "n": 1}}),
        ({"any": {"A b": [None, {"": 1}]}}, {"any": {"A b": [None, {"": 1}]}}),
        ({"kind": "BIG", "size": 3}, {"kind": "BIG", "size": 3}),
        ({"enum": "one"}, {"enum": "one"}),
        ({"loose": "three"}, {"loose": "three"}),
        ({"server": 5, "array": None}, {}),
    ],
)
def test_members_are_stored_in_canonical_form(members: dict[str, Any], stored: dict[str, Any]) -> None:
    assert check_members(ATTRIBUTES, members, types) == stored


@pytest.mark.parametrize(
    ("members", "code", "name"),
    [
        ({"array": [1, None]}, "invalid_attribute", "array[1]"),
        ({"deep": [["a"], ["b", 1]]}, "invalid_attribute", "deep[1][1]"),
        ({"map": {"A": "1"}}, "invalid_attribute", "map.A"),
        ({"map": {"a" * 64: "1"}}, "invalid_attribute", f"map.{'a' * 64}"),
        ({"map": {"a": 1}}, "invalid_attribute", "map.a"),
        ({"object": {"q": 1}}, "unknown_attribute", "object.q"),
        ({"object": []}, "invalid_attribute", "object"),
        ({"size": 1}, "unknown_attribute", "size"),
        ({"kind": "big"}, "required_attribute_missing", "size"),
        ({"enum": "three"}, "invalid_attribute", "enum"),
        ({"Bad": 1}, "invalid_attribute", "Bad"),
        ({"gone": None}, "unknown_attribute", "gone"),
    ],
)
def test_invalid_members_are_rejected_with_their_path(members: dict[str, Any], code: str, name: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        check_members(ATTRIBUTES, members, types)
    assert (raised.value.first.code, raised.value.first.name) == (code, name)


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        (
            {"enum": "x", "array": [1, "a", None], "map": {"A": 5, "b": 6}, "object": {"n": "x", "q": 1}},
            ["enum enum", "type array[1]", "type array[2]", "key map.A", "type map.A", "type map.b", "type object.n",
             "unknown object.q"],
        ),
        ({"kind": "big", "enum": 5, "Bad": 1, "gone": 1}, ["type enum", "missing size", "name Bad", "unknown gone"]),
        ({"kind": 5, "size": 1}, ["type kind"]),
        ({"kind": "big", "size": "1"}, ["type size"]),
        ({"any": float("inf"), "server": 5}, ["value any"]),
    ],
)  # fmt: skip
def test_all_faults_are_reported_in_one_error(members: dict[str, Any], faults: list[str]) -> None:
    with pytest.raises(InvalidValue) as raised:
        check_members(ATTRIBUTES, members, types)
    assert [f"{fault.rule} {fault.name}" for fault in raised.value.faults] == faults


def test_check_ends_after_many_faults() -> None:
    with pytest.raises(InvalidValue) as raised:
        check_members(ATTRIBUTES, {"deep": [[1] * 70, [2] * 70], "enum": 5}, types)
    assert len(raised.value.faults) == MAX_FAULTS
    assert raised.value.faults[-1].name == "deep[1][29]"


@pytest.mark.parametrize(
    ("target", "matching"),
    [
        ("", {"/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/v"}),
        ("/dirs", {"/dirs/d"}),
        ("/dirs/files", {"/dirs/d/files/f"}),
        ("/dirs/files/versions", {"/dirs/d/files/f/versions/v"}),
        ("/dirs/files[/versions]", {"/dirs/d/files/f", "/dirs/d/files/f/versions/v"}),
    ],
)
def test_c_mod_12_xid_matches_its_target(target: str, matching: set[str]) -> None:
    every = {"/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/v"}
    assert {xid for xid in every if fits_target(xid, target, types)} == matching
