"""`$details`, Location and Content-Location. Tests are named after rows of the checklist."""

from __future__ import annotations

import json
from typing import Any

from tests.httpapi.conftest import Client

F = "/dirs/d/files/f"


# -- where it is --------------------------------------------------------------------------------------------------


def test_export_can_be_written_back(registry: Client) -> None:
    registry.put(F, b'{"x": 1}', content_type="application/json", xregistry_name="n")
    registry.put("/dirs/d/datas/t", {"name": "t", "versions": {"a": {}, "b": {}}})
    registry.put("/dirs/d/datas/s", {"meta": {"xref": "/dirs/d/datas/t"}})
    exported = registry.get("/export").json
    registry.delete("/dirs")
    reply = registry.put("/?ignore=epoch", exported)
    assert reply.status == 200, reply.body
    again = registry.get("/export").json

    def still(value: Any) -> Any:
        """Without what an import changes."""
        if isinstance(value, dict):
            return {
                name: still(item) for name, item in value.items() if name not in ("epoch", "modifiedat", "createdat")
            }
        return value

    assert json.dumps(still(again)) == json.dumps(still(exported))
