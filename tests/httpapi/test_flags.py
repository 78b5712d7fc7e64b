"""Flags: query parameters of requests. Tests are named after rows of the checklist.

Spec: core/spec.md#request-flags; core/http.md#request-flags--query-parameters. `filter` has its own module.
"""

from __future__ import annotations

import pytest

from tests.httpapi.conftest import Client

X = "/dirs/d/datas/x"
F = "/dirs/d/files/f"


@pytest.fixture
def filled(registry: Client) -> Client:
    assert registry.put(F, b'{"a": 1}', content_type="application/json").status == 201
    assert registry.post(f"{X}/versions", {"v1": {}, "v2": {}}).status == 200
    return registry


# -- in general ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["inline=nothing", "ignore=nothing", "filter=a..b", "specversion=9"])
def test_bad_flag_precedes_wrong_method_and_missing_body(registry: Client, flag: str) -> None:
    for method, url in (("PUT", "/dirs"), ("PATCH", F), ("PUT", "/dirs/d"), ("GET", "/dirs/d"), ("POST", "/model")):
        error = registry.send(method, f"{url}?{flag}").error
        assert error[0] == 400
        assert error[1] in ("bad_inline", "bad_ignore", "bad_filter", "unsupported_specversion")
        assert error[2] == url


# -- inline -------------------------------------------------------------------------------------------------------


def test_c_inl_01_what_can(filled: Client) -> None:
    for name in ("model", "modelsource", "capabilities"):
        assert filled.get(f"/?inline={name}").json[name] == filled.get(f"/{name}").json
    assert set(filled.get("/?inline=dirs,boxes").json) >= {"dirs", "boxes"}
    assert filled.get(f"{F}$details?inline=meta").json["meta"] == filled.get(f"{F}/meta").json
    assert filled.get(f"{F}$details?inline=file").json["file"] == {"a": 1}
    assert filled.get("/?inline=['dirs']").json["dirs"].keys() == {"d"}


# -- sort, specversion --------------------------------------------------------------------------------------------


def test_empty_inline_parameter_means_everything(filled: Client) -> None:
    everything = filled.get("/?inline=*,model").body
    for query in ("inline=model&inline", "inline&inline=model", "inline=model&inline=", "inline=model,*"):
        assert filled.get(f"/?{query}").body == everything, query
    assert filled.get("/dirs?inline=datas&inline").body == filled.get("/dirs?inline=*").body


def test_empty_ignore_parameter_means_everything(filled: Client) -> None:
    attributes = {"registryid": "other", "epoch": 99, "capabilities": {"flags": []}}
    for query in ("ignore=epoch&ignore", "ignore&ignore=epoch", "ignore=epoch&ignore=", "ignore=*,epoch"):
        assert filled.patch(f"/?{query}", attributes).status == 200, query
    assert filled.patch("/?ignore=epoch", attributes).status == 400


def test_ignored_epoch_of_a_delete_is_not_checked(filled: Client) -> None:
    paths = [f"{X}/versions/v2", X, "/dirs/d"]
    for path in paths:
        assert filled.delete(f"{path}?epoch=999").error[:2] == (400, "mismatched_epoch")
        assert filled.delete(f"{path}?epoch=999&ignore=id").error[:2] == (400, "mismatched_epoch")
    for path, flag in zip(paths, ("ignore=epoch", "ignore", "ignore=id,epoch"), strict=True):
        assert filled.delete(f"{path}?epoch=999&{flag}").status == 204, path
