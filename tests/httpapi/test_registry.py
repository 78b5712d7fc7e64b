"""The Registry, its capabilities, its model, and flags. Tests are named after rows of the checklist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.conftest import Client


def test_c_reg_03_what_is_shown_on_demand(registry: Client) -> None:
    for name in ("capabilities", "model", "modelsource"):
        assert name not in registry.get("/?inline=*").json
        assert registry.get(f"/?inline={name}").json[name] == registry.get(f"/{name}").json


@pytest.mark.parametrize("value", ["1.0", "", 5, None, {}])
def test_c_reg_02_and_10_what_is_only_read(registry: Client, value: Any) -> None:
    before = registry.get("/?inline=model").json
    for method in ("PUT", "PATCH"):
        attributes = {"specversion": value, "model": value, "self": value, "xid": value, "name": "n"}
        stored = registry.send(method, "/?inline=model", attributes).json
        assert stored == {**before, "epoch": stored["epoch"], "modifiedat": stored["modifiedat"], "name": "n"}
    assert stored["specversion"] == "1.0-rc4"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("/?inline=foo", "bad_inline"),
        ("/?inline=name", "inline_noninlineable"),
        ("/?inline=dirs.d*", "bad_inline"),
        ("/?inline=*.dirs", "bad_inline"),
        ("/dirs?inline=dirs", "bad_inline"),
        ("/?inline=dirs.files.filebase64", "inline_noninlineable"),
        ("/?ignore=foo", "bad_ignore"),
        ("/dirs?collections", "bad_flag"),
        ("/?specversion=9", "unsupported_specversion"),
    ],
)
def test_invalid_flag_is_rejected(registry: Client, url: str, code: str) -> None:
    assert registry.get(url).error[:2] == (400, code)


def test_c_cln_01_and_03_collections(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {"name": "n"})
    members = registry.get("/?collections").json
    assert set(members) == {f"{plural}{end}" for plural in ("dirs", "boxes") for end in ("", "url", "count")}
    registry.delete("/dirs")
    members["dirs"]["d"].pop("epoch")
    assert registry.post("/?ignore=epoch", members).status == 200
    assert registry.get("/dirs/d/datas/x").json["name"] == "n"


def test_c_ign(registry: Client) -> None:
    registry.put("/dirs/d", {})
    assert registry.put("/dirs/d?ignore=epoch", {"epoch": 99}).status == 200
    assert registry.put("/dirs/d?ignore=id", {"dirid": "other"}).status == 200
    assert registry.put("/dirs/d", {"dirid": "other"}).error == (400, "mismatched_id", "/dirs/d")
    assert registry.put("/?ignore=capabilities,modelsource", {"capabilities": 5, "modelsource": 5}).status == 200


def test_unknown_path_is_rejected(registry: Client) -> None:
    assert registry.get("/nope").error[:2] == (400, "unknown_group_type")
    assert registry.get("/dirs/d/nope").error[:2] == (400, "unknown_resource_type")
    assert registry.get("/dirs//files").error[:2] == (400, "bad_request")
    assert registry.get("/dirs/d/files/f/nope").error[:2] == (404, "not_found")
