"""Resolution vectors: the effective attributes after aliases, base messages and groups are resolved.

``effective`` has the attributes of messages, by XID (all of them with ``whole``, else those that are no identity or
bookkeeping); ``incomplete`` and ``invalid`` are complete lists; ``diagnostics`` are ``[code, pointer]``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.load import load_registry
from wirebook.definitions.resolve.merge import OWN_ONLY

FILE = Path(__file__).resolve().parent.parent / "vectors" / "documents" / "resolution.json"


def vectors() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text("utf-8"))["vectors"]


def observe(vector: dict[str, Any]) -> dict[str, Any]:
    registry = load_registry(vector["document"])
    hidden = {} if vector.get("whole") else OWN_ONLY
    effective = {
        xid: {name: value for name, value in registry.messages[xid].attributes.items() if name not in hidden}
        for xid in vector["effective"]
    }
    return {
        "effective": effective,
        "incomplete": {m.xid: m.incomplete for m in registry.messages.values() if m.incomplete is not None},
        "invalid": [m.xid for m in registry.messages.values() if m.invalid],
        "endpoints": {
            e.xid: {"messages": [*e.messages], "groups": [*e.groups], "dangling": [*e.dangling]}
            for e in registry.endpoints.values()
        },
        "diagnostics": [[problem.code, problem.pointer] for problem in registry.diagnostics],
    }


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in vectors()])
def test_resolution_vector_has_expected_result(vector: dict[str, Any]) -> None:
    observed = observe(vector)
    assert observed["effective"] == vector["effective"]
    assert observed["incomplete"] == vector.get("incomplete", {})
    assert observed["invalid"] == vector.get("invalid", [])
    assert observed["diagnostics"] == vector["diagnostics"]
    if "endpoints" in vector:
        assert observed["endpoints"] == vector["endpoints"]
