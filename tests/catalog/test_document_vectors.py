"""Document vectors: the normalised document, the diagnostics of loading, and further findings of lint.

A vector has one of ``message``, ``endpoint``, ``document``. A message stands at ``/messagegroups/g/messages/m``, an
endpoint at ``/endpoints/e``; pointers in the vector begin there. ``diagnostics`` are those of loading, ``lint`` what
the rules find beside them, each as ``[code, pointer]``.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.load import load_registry
from wirebook.definitions.lint.registry import lint
from wirebook.text.pointers import resolve

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "documents"
PLACES = {"message": "/messagegroups/g/messages/m", "endpoint": "/endpoints/e", "document": ""}
FILES = ("texts.json", "dialects.json")


def vectors(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / name).read_text("utf-8"))["vectors"]


def wrap(kind: str, value: Any) -> dict[str, Any]:
    if kind == "message":
        return {"messagegroups": {"g": {"messages": {"m": value}}}}
    return {"endpoints": {"e": value}} if kind == "endpoint" else value


def observe(vector: dict[str, Any]) -> dict[str, Any]:
    """Load and lint the document of a vector."""
    kind = next(name for name in PLACES if name in vector)
    value = wrap(kind, copy.deepcopy(vector[kind]))
    registry = load_registry(value)
    assert value == wrap(kind, vector[kind]), "loading changed what it was given"
    diagnostics = [[problem.code, problem.pointer.removeprefix(PLACES[kind])] for problem in registry.diagnostics]
    findings = [[problem.code, problem.pointer.removeprefix(PLACES[kind])] for problem in lint(registry)]
    document = dict(registry.document.items())
    return {
        "expected": resolve(document, PLACES[kind]) if PLACES[kind] else document,
        "diagnostics": diagnostics,
        "lint": [finding for finding in findings if finding not in diagnostics],
    }


@pytest.mark.parametrize(
    "vector", [pytest.param(vector, id=f"{name}:{vector['name']}") for name in FILES for vector in vectors(name)]
)
def test_document_vector_has_expected_result(vector: dict[str, Any]) -> None:
    observed = observe(vector)
    assert json.dumps(observed["expected"]) == json.dumps(vector["expected"])
    assert observed["diagnostics"] == vector["diagnostics"]
    assert observed["lint"] == vector["lint"]
