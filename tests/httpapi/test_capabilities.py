"""Capabilities: current and offered values, changes, and the effect of each. Rows CAP of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import OFFER, Client, serve
from wirebook.core.model.capabilities import initial_capabilities
from wirebook.storage.database import Database
from wirebook.storage.session import StoredSettings

FRESH: Final[dict[str, Any]] = {
    "available": {
        ".xregistry": {"mutable": False},
        "capabilities": {"mutable": True},
        "capabilitiesoffered": {"mutable": False},
        "entities": {"mutable": True},
        "export": {"mutable": False},
        "model": {"mutable": False},
        "modelsource": {"mutable": True},
    },
    "compatibilities": {"jsonschema*": ["backward", "forward", "full"]},
    "flags": ["binary", "collections", "doc", "epoch", "filter", "ignore", "inline", "setdefaultversionid", "sort",
              "specversion"],
    "formats": ["jsonschema*"],
    "ignores": ["capabilities", "defaultversionid", "defaultversionsticky", "epoch", "id", "modelsource", "readonly"],
    "pagination": True,
    "shortself": False,
    "specversions": ["1.0-rc2", "1.0-rc4"],
    "versionmodes": ["createdat", "manual", "modifiedat", "semver"],
}  # fmt: skip
LEAST: Final[dict[str, Any]] = {
    "available": {"capabilities": {"mutable": False}, "entities": {"mutable": True}, "model": {"mutable": False}},
    "compatibilities": {},
    "flags": [],
    "formats": [],
    "ignores": [],
    "pagination": False,
    "shortself": False,
    "specversions": ["1.0-rc4"],
    "versionmodes": ["manual"],
}
"""What the text says that each is where it is not given."""


def capabilities(registry: Client) -> Any:
    return registry.get("/capabilities").json


def available(registry: Client, **kinds: bool | None) -> dict[str, Any]:
    """Makes other kinds of data available or mutable; None is one that is not there. What is answered."""
    there = {kind: setting for kind, setting in capabilities(registry)["available"].items() if kind not in kinds}
    there |= {kind: {"mutable": mutable} for kind, mutable in kinds.items() if mutable is not None}
    reply = registry.patch("/capabilities", {"available": there})
    assert reply.status == 200
    attributes: dict[str, Any] = reply.json["available"]
    return attributes


@pytest.fixture
def plain(database: Database) -> Client:
    """A registry whose model asks for nothing beyond the least."""
    return serve(database, {"groups": {"dirs": {"singular": "dir", "resources": {"datas": {"singular": "data"}}}}})


# -- what is shown ------------------------------------------------------------------------------------------------


def test_c_cap_01_04_07_08_09_10_11_12_13_14_and_17_what_is_not_given_falls_to_its_default(plain: Client) -> None:
    there = capabilities(plain)["available"]
    reply = plain.put("/capabilities", {"available": there})
    assert (reply.status, reply.json) == (200, {**LEAST, "available": there})
    assert capabilities(plain) == reply.json
    for name, default in LEAST.items():
        plain.patch("/", {"capabilities": None})
        if name == "formats":
            plain.patch("/capabilities", {"compatibilities": None})
        assert plain.patch("/capabilities", {name: None}).json[name] == default
        if name == "available":
            plain = serve_again(plain)
    assert plain.put("/capabilities", {}).json == LEAST
    assert plain.put("/capabilities", {}).error == (400, "not_available", "/capabilities")


def serve_again(client: Client) -> Client:
    """With the capabilities of a fresh registry, which a client whose capabilities are not mutable cannot have back."""
    with client.database.writing() as session:
        stored = session.settings()
        session.store_settings(
            StoredSettings(stored.full, stored.homes, stored.modelsource, initial_capabilities(OFFER))
        )
    return client


# -- what is offered ----------------------------------------------------------------------------------------------


def test_c_cap_22_whatever_is_offered_can_be_had(registry: Client) -> None:
    offers = registry.get("/capabilitiesoffered").json
    for name, offer in offers.items():
        for value in offer.get("enum", ()):
            chosen = {"manual", "1.0-rc4"} & set(FRESH[name]) | {value} if offer["type"] == "array" else value
            capabilities = {name: sorted(chosen) if isinstance(chosen, set) else chosen}
            expected = (200, capabilities[name]) if name != "versionmodes" else (400, None)
            reply = registry.patch("/capabilities", capabilities)
            assert (reply.status, reply.json.get(name)) == expected
    registry.patch("/", {"capabilities": None})
    for kind, offer in offers["available"]["attributes"].items():
        for mutable in reversed(offer["attributes"]["mutable"]["enum"]):
            if (kind, mutable) != ("capabilities", False):
                assert available(registry, **{kind: mutable})[kind] == {"mutable": mutable}


# -- what they do -------------------------------------------------------------------------------------------------


def test_c_cap_05_not_by_another_way_either(registry: Client) -> None:
    available(registry, modelsource=None)
    assert registry.get("/?inline=modelsource").error == (400, "not_available", "/modelsource")
    assert registry.get("/?inline=model").json["model"] == registry.get("/model").json
    before = registry.get("/export").body
    assert b'"modelsource":' not in before.replace(b'"ignores"', b"").partition(b'"capabilities"')[0]
    assert "modelsource" not in registry.get("/export").json
    assert registry.get("/export?inline=modelsource").error == (400, "not_available", "/modelsource")
    for method in ("PUT", "PATCH"):
        assert registry.send(method, "/", {"modelsource": {}}).error == (400, "not_available", "/modelsource")
        assert registry.send(method, "/?ignore=modelsource", {"modelsource": {}}).status == 200
    assert registry.get("/model").status == 200


def test_specversions_ignore_the_patch_number(registry: Client) -> None:
    for versions in (["1.0.1-rc4"], ["1.0.7-RC4", "1.0-rc4"]):
        assert registry.patch("/capabilities", {"specversions": versions}).json["specversions"] == ["1.0-rc4"]
    assert (
        registry.put("/capabilities", {"specversions": ["1.0.0-rc4", "1.0.3-rc2"], "versionmodes": ["*"]}).status == 200
    )
    assert capabilities(registry)["specversions"] == ["1.0-rc2", "1.0-rc4"]


def test_version_mode_is_checked_against_the_model_of_the_same_request(plain: Client) -> None:
    def model(mode: str) -> dict[str, Any]:
        type_ = {"singular": "data", "versionmode": mode, "singleversionroot": mode != "manual"}
        return {"groups": {"dirs": {"singular": "dir", "resources": {"datas": type_}}}}

    assert plain.put("/modelsource", model("createdat")).status == 200
    least = {**capabilities(plain), "versionmodes": ["manual"]}
    assert plain.patch("/", {"capabilities": least}).error == (400, "model_error", "/model")
    assert plain.patch("/", {"capabilities": least, "modelsource": model("manual")}).status == 200
    assert plain.patch("/", {"capabilities": least, "modelsource": model("createdat")}).error[1] == "model_error"
    assert plain.get("/model").json["groups"]["dirs"]["resources"]["datas"]["versionmode"] == "manual"
