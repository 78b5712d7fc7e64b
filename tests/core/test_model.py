"""The model: its language, the full model, includes and imports.

Spec: core/model.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.core.model.builtin import builtin_model
from wirebook.core.model.language import VERSION_MODES
from wirebook.core.model.reader import read_model
from wirebook.problems.xregistry import Refused

TEXTS = "spec/xregistry-1.0-rc4"


def no_fetch(address: str) -> Any:
    raise ValueError(f"'{address}' is not there")


def read(source: Any, fetch: Any = no_fetch) -> Any:
    return read_model(source, fetch, VERSION_MODES)


def test_full_model_equals_that_of_the_specification(shared: Path) -> None:
    folder = shared / TEXTS / "core"
    source, full = (json.loads((folder / f"sample-model{end}.json").read_text()) for end in ("", "-full"))
    assert json.dumps(read(source).model.full) == json.dumps(full)


@pytest.mark.parametrize("name", ["endpoint", "message", "schema", "cloudevents"])
def test_published_model_is_read_unchanged(shared: Path, name: str) -> None:
    folder = shared / TEXTS

    def fetch(address: str) -> Any:
        return json.loads((folder / address.removeprefix("file:///texts/")).read_text())

    source = json.loads((folder / name / "model.json").read_text())
    from_here = json.loads(json.dumps(source).replace('"../', '"file:///texts/'))
    assert read(from_here, fetch).model.groups


def test_built_in_model_equals_published_models(shared: Path) -> None:
    folder = shared / TEXTS
    built_in = builtin_model()["groups"]
    for name, group in (("message", "messagegroups"), ("schema", "schemagroups"), ("endpoint", "endpoints")):
        published = json.loads((folder / name / "model.json").read_text())["groups"][group]
        assert _differences(published, built_in[group]) == []


def _differences(published: Any, ours: Any, at: str = "") -> list[str]:
    """Return the paths that differ, without descriptions, names (which equal the keys) and included Resources."""
    if not isinstance(published, dict):
        return [] if published == ours else [at]
    left = {key: value for key, value in published.items() if key[0] != "$" and not _is_prose(key, value)}
    if isinstance(left.get("resources"), dict) and "$include" in str(left["resources"]):
        del left["resources"]
    return [
        path
        for key, value in left.items()
        for path in (_differences(value, ours[key], f"{at}/{key}") if key in ours else [f"{at}/{key}"])
    ]


def _is_prose(key: str, value: Any) -> bool:
    return key in ("name", "description") and isinstance(value, str)


def test_built_in_model_shares_messages_with_endpoints() -> None:
    model = read(builtin_model()).model
    assert list(model.groups) == ["endpoints", "messagegroups", "schemagroups"]
    assert model.groups["endpoints"].resources["messages"].home == ("messagegroups", "messages")


def test_c_mod_41_local_and_earlier_definitions_take_precedence() -> None:
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
def test_c_mod_42_invalid_include_is_rejected(source: Any) -> None:
    def fetch(address: str) -> Any:
        if address == "http://h/gone":
            raise OSError("gone")
        return {"$include": address}

    with pytest.raises(Refused, match="error in the model definition"):
        read(source, fetch)


def chain(address: str) -> Any:
    """Return a document that includes another one, without end."""
    return {"$include": f"http://h/{int(address.rpartition('/')[2]) + 1}"}


def many(_: str) -> Any:
    return {f"x{i}": {"type": "string"} for i in range(1000)}


def deeper(address: str) -> Any:
    nested: Any = {"$include": f"{address}1"}
    for _ in range(20):
        nested = {"attributes": {"x": nested}}
    return nested


@pytest.mark.parametrize(
    ("fetch", "why"),
    [(chain, "a chain of more than 20"), (many, "more than 1000000 values"), (deeper, "nested deeper than 100")],
)
def test_include_beyond_a_limit_is_rejected(fetch: Any, why: str) -> None:
    groups = {f"g{i}": {"$include": "http://h/1"} for i in range(1000)}
    with pytest.raises(Refused) as raised:
        read({"groups": groups}, fetch)
    assert why in raised.value.title
