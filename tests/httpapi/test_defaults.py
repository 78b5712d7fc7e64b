"""The default Version of a Resource, and the flag that chooses it. Tests are named after rows of the checklist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import default_of, refuses
from tests.httpapi.conftest import Client

D = "/dirs/d/datas"
X = f"{D}/x"


# -- the flag -----------------------------------------------------------------------------------------------------


def test_c_sdv(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert registry.patch(f"{X}?setdefaultversionid=a", {}).status == 200
    assert default_of(registry, X) == ("a", True)
    assert registry.patch(f"{X}/meta?setdefaultversionid=null", {}).json["defaultversionid"] == "b"
    assert registry.post(f"{X}?setdefaultversionid=request", {}).json["versionid"] == "1"
    assert default_of(registry, X) == ("1", True)
    assert registry.delete(f"{X}/versions/1?setdefaultversionid=a").status == 204
    assert default_of(registry, X) == ("a", True)
    assert registry.delete(f"{X}/versions?setdefaultversionid=b", {}).status == 204
    assert default_of(registry, X) == ("b", True)
    assert registry.patch(f"{X}/versions?setdefaultversionid=null", {}).json == {}
    assert default_of(registry, X) == ("b", False)


def test_c_sdv_is_stronger_than_what_is_sent(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    choice = {"defaultversionid": "none", "defaultversionsticky": True}
    assert registry.put(f"{X}/meta?setdefaultversionid=a", choice).json["defaultversionid"] == "a"
    registry.put(f"{X}?setdefaultversionid=null", {"meta": choice})
    assert default_of(registry, X) == ("b", False)
    registry.put(f"{D}/new?setdefaultversionid=v1", {"versions": {"v1": {}, "v2": {}}})
    assert default_of(registry, f"{D}/new") == ("v1", True)
    registry.post(f"{D}/more/versions?setdefaultversionid=v1", {"v1": {}, "v2": {}})
    assert default_of(registry, f"{D}/more") == ("v1", True)


@pytest.mark.parametrize(
    ("method", "url", "content", "code"),
    [
        ("PATCH", f"{X}?setdefaultversionid=z", {}, "unknown_id"),
        ("PATCH", f"{X}?setdefaultversionid=", {}, "bad_defaultversionid"),
        ("PATCH", f"{X}?setdefaultversionid=a&setdefaultversionid=b", {}, "bad_defaultversionid"),
        ("PATCH", f"{X}?setdefaultversionid=request", {}, "bad_flag"),
        ("POST", f"{X}/versions?setdefaultversionid=request", {"p": {}, "q": {}}, "too_many_versions"),
        ("POST", f"{X}/versions?setdefaultversionid=request", {}, "defaultversionid_request"),
        ("POST", f"{D}?setdefaultversionid=a", {"x": {}}, "bad_flag"),
        ("DELETE", f"{X}/versions/a?setdefaultversionid=a", None, "unknown_id"),
        ("DELETE", f"{X}/versions/a?setdefaultversionid=A", None, "unknown_id"),
        ("DELETE", f"{X}/versions?setdefaultversionid=z", None, "unknown_id"),
        ("DELETE", f"{X}/versions?setdefaultversionid=z", {"a": {}, "b": {}}, "unknown_id"),
        ("PUT", f"{D}/new?setdefaultversionid=z", {}, "unknown_id"),
        ("POST", f"{D}/new?setdefaultversionid=z", {}, "unknown_id"),
    ],
)
def test_c_sdv_errors(registry: Client, method: str, url: str, content: Any, code: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}})
    assert refuses(registry, method, url, content, code)["status"] == 400
