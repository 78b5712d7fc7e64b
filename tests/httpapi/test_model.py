"""The model language: valid and invalid models, and the full model. Tests are named after rows of the checklist."""

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


# -- the model and its source -------------------------------------------------------------------------------------


def test_full_model_omits_empty_aspects(empty: Client) -> None:
    said_nothing = {"enum": [], "required": False, "readonly": False, "default": None, "ifvalues": {}, "target": ""}
    assert model(empty, version(**STRING, **said_nothing))["groups"]["dirs"]["resources"]["files"]["attributes"][
        "x"
    ] == {"name": "x", "type": "string"}
    full = model(empty, version(type="string", enum=["b", "a"], matchversions=True, description="d"))
    attribute = full["groups"]["dirs"]["resources"]["files"]["attributes"]["x"]
    expected = {"name": "x", "type": "string", "description": "d", "matchversions": True, "enum": ["b", "a"]}
    assert json.dumps(attribute) == json.dumps(expected | {"strict": True})


# -- the published models -----------------------------------------------------------------------------------------


def test_built_in_model_source_can_be_written_back(database: Database) -> None:
    client = serve(database, builtin_model())
    source, full = client.get("/modelsource"), client.get("/model")
    assert "$include" not in source.body.decode()
    assert client.put("/modelsource", source.body).status == 200
    assert client.get("/model").body == full.body
    client.put("/endpoints/e/messages/m", {})
    assert client.put("/modelsource", source.body).status == 200
