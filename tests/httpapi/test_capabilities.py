"""Capabilities: what is shown, what is offered, how they change, and what each of them does. Rows CAP."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import FIXTURE, OFFER, Client, serve
from wirebook.core.model.capabilities import FLAGS, IGNORES, everything
from wirebook.storage.database import Database
from wirebook.storage.session import StoredSettings

X: Final = "/dirs/d/datas/x"
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
    there = {kind: each for kind, each in capabilities(registry)["available"].items() if kind not in kinds}
    there |= {kind: {"mutable": mutable} for kind, mutable in kinds.items() if mutable is not None}
    reply = registry.patch("/capabilities", {"available": there})
    assert reply.status == 200
    shown: dict[str, Any] = reply.json["available"]
    return shown


@pytest.fixture
def plain(database: Database) -> Client:
    """A registry whose model asks for nothing beyond the least."""
    return serve(database, {"groups": {"dirs": {"singular": "dir", "resources": {"datas": {"singular": "data"}}}}})


# -- what is shown ------------------------------------------------------------------------------------------------


def test_c_cap_01_02_03_04_07_08_09_10_11_12_13_14_everything_is_listed(registry: Client) -> None:
    reply = registry.get("/capabilities")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    assert reply.json == FRESH
    assert list(reply.json) == sorted(FRESH)
    assert registry.get("/?inline=capabilities").json["capabilities"] == FRESH
    assert registry.get("/export").json["capabilities"] == FRESH
    assert set(FRESH["flags"]) == set(FLAGS)
    assert set(FRESH["ignores"]) == set(IGNORES)


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
        session.store_settings(StoredSettings(stored.full, stored.homes, stored.modelsource, everything(OFFER)))
    return client


# -- changing them ------------------------------------------------------------------------------------------------


def test_c_cap_17_and_20_put_replaces_and_patch_replaces_what_it_names(registry: Client) -> None:
    flags = registry.patch("/capabilities", {"flags": ["INLINE", "Filter", "inline"]})
    assert (flags.status, flags.json) == (200, {**FRESH, "flags": ["filter", "inline"]})
    assert capabilities(registry) == flags.json
    assert registry.patch("/capabilities", {}).json == flags.json
    available = {**FRESH["available"], "export": None}
    given = {"available": available, "versionmodes": ["*"], "shortself": True}
    replaced = {**LEAST, "versionmodes": FRESH["versionmodes"], "shortself": True}
    replaced["available"] = {kind: each for kind, each in available.items() if each}
    assert registry.put("/capabilities", given).json == replaced
    assert capabilities(registry) == replaced
    assert registry.put("/capabilities", FRESH).json == FRESH


def test_c_cap_17_through_the_registry(registry: Client) -> None:
    changed = registry.patch("/?inline=capabilities", {"capabilities": {"shortself": True}}).json
    assert changed["capabilities"] == {**FRESH, "shortself": True}
    given = {"available": FRESH["available"], "versionmodes": ["*"], "flags": ["inline"]}
    changed = registry.put("/?inline=capabilities", {"capabilities": given}).json
    assert changed["capabilities"] == {**LEAST, **given, "versionmodes": FRESH["versionmodes"]}
    assert registry.put("/", {}).status == 200
    assert capabilities(registry) == changed["capabilities"]
    registry.patch("/", {"capabilities": None})
    assert capabilities(registry) == FRESH


def test_c_cap_15_and_16_case_repeats_and_wildcards(registry: Client) -> None:
    sent = {
        "available": {"MODELSOURCE": {"mutable": True}, "Capabilities": {"mutable": True}},
        "compatibilities": {"JsonSchema*": ["FULL", "Backward", "full"]},
        "formats": ["JSONSCHEMA*"],
        "ignores": ["ID", "id", "Epoch"],
        "specversions": ["1.0-RC4"],
        "versionmodes": ["Manual", "SEMVER", "createdat", "manual"],
    }
    assert registry.patch("/capabilities", sent).json == {
        **FRESH,
        "available": {**LEAST["available"], "capabilities": {"mutable": True}, "modelsource": {"mutable": True}},
        "compatibilities": {"jsonschema*": ["backward", "full"]},
        "ignores": ["epoch", "id"],
        "specversions": ["1.0-rc4"],
        "versionmodes": ["createdat", "manual", "semver"],
    }
    lists = ("flags", "formats", "ignores", "specversions", "versionmodes")
    changed = registry.patch("/capabilities", {name: ["*"] for name in lists}).json
    assert {name: changed[name] for name in lists} == {name: FRESH[name] for name in lists}
    changed = registry.patch("/capabilities", {"compatibilities": {"jsonschema*": ["*"]}}).json
    assert changed["compatibilities"] == FRESH["compatibilities"]
    assert registry.patch("/capabilities", {"compatibilities": {"jsonschema*": []}}).json["compatibilities"] == {
        "jsonschema*": []
    }


def test_c_ent_09_a_schema_may_be_named(registry: Client) -> None:
    assert registry.patch("/capabilities", {"$schema": "https://example.com/s", "shortself": True}).json == {
        **FRESH,
        "shortself": True,
    }


FLAG_LIST: Final = ",".join(FRESH["flags"])


@pytest.mark.parametrize(
    ("sent", "code", "args"),
    [
        ({"foo": 1}, "capability_unknown", {"field": "foo"}),
        ({"Flags": []}, "capability_unknown", {"field": "Flags"}),
        ({"": []}, "capability_unknown", {"field": ""}),
        ({"mutable": ["entities"]}, "capability_unknown", {"field": "mutable"}),
        ({"available": {"export": {"mutable": False, "x": 1}}}, "capability_unknown", {"field": "available.export.x"}),
        ({"flags": ["foo"]}, "capability_value", {"field": "flags", "value": "foo", "list": FLAG_LIST}),
        ({"flags": ["doc", ""]}, "capability_value", {"field": "flags", "value": "", "list": FLAG_LIST}),
        ({"flags": "doc"}, "capability_value", {"field": "flags", "value": "doc", "list": FLAG_LIST}),
        ({"flags": [5]}, "capability_value", {"field": "flags", "value": "an array", "list": FLAG_LIST}),
        ({"flags": [None]}, "capability_value", {"field": "flags", "value": "an array", "list": FLAG_LIST}),
        ({"flags": {}}, "capability_value", {"field": "flags", "value": "an object", "list": FLAG_LIST}),
        ({"flags": True}, "capability_value", {"field": "flags", "value": "true", "list": FLAG_LIST}),
        ({"ignores": ["filter"]}, "capability_value", {
            "field": "ignores", "value": "filter", "list": ",".join(FRESH["ignores"])}),
        ({"pagination": 1}, "capability_value", {"field": "pagination", "value": "1", "list": "false,true"}),
        ({"shortself": "true"}, "capability_value", {"field": "shortself", "value": "true", "list": "false,true"}),
        ({"specversions": ["1.0-rc4", "1.0-rc9"]}, "capability_value", {
            "field": "specversions", "value": "1.0-rc9", "list": "1.0-rc2,1.0-rc4"}),
        ({"versionmodes": ["manual", "random"]}, "capability_value", {
            "field": "versionmodes", "value": "random", "list": "createdat,manual,modifiedat,semver"}),
        ({"available": ["entities"]}, "capability_value", {
            "field": "available", "value": "an array", "list": ",".join(FRESH["available"])}),
        ({"available": {"sauce": {"mutable": True}}}, "capability_value", {
            "field": "available", "value": "sauce", "list": ",".join(FRESH["available"])}),
        ({"available": {"model": {"mutable": True}}}, "capability_value", {
            "field": "available.model.mutable", "value": "true", "list": "false"}),
        ({"available": {"export": {"mutable": True}}}, "capability_value", {
            "field": "available.export.mutable", "value": "true", "list": "false"}),
        ({"available": {"entities": {}}}, "capability_value", {
            "field": "available.entities.mutable", "value": "null", "list": "false,true"}),
        ({"available": {"entities": {"mutable": 1}}}, "capability_value", {
            "field": "available.entities.mutable", "value": "1", "list": "false,true"}),
        ({"available": {"entities": True}}, "capability_value", {
            "field": "available.entities", "value": "true", "list": "mutable"}),
        ({"compatibilities": []}, "capability_value", {
            "field": "compatibilities", "value": "an array", "list": "jsonschema*"}),
        ({"specversions": ["1.0.1-rc9"]}, "capability_value", {
            "field": "specversions", "value": "1.0.1-rc9", "list": "1.0-rc2,1.0-rc4"}),
        ({"specversions": ["1.0"]}, "capability_value", {
            "field": "specversions", "value": "1.0", "list": "1.0-rc2,1.0-rc4"}),
        ({"specversions": []}, "capability_missing_value", {"name": "specversions", "value": "1.0-rc4"}),
        ({"specversions": ["1.0-rc2"]}, "capability_missing_value", {"name": "specversions", "value": "1.0-rc4"}),
        ({"versionmodes": ["createdat"]}, "capability_missing_value", {"name": "versionmodes", "value": "manual"}),
        ({"flags": ["*", "doc"]}, "capability_wildcard", {"field": "flags"}),
        ({"flags": ["*", "*"]}, "capability_wildcard", {"field": "flags"}),
        ({"compatibilities": {"jsonschema*": ["*", "full"]}}, "capability_wildcard", {
            "field": "compatibilities[jsonschema*]"}),
        ({"formats": ["foo"]}, "capability_error", None),
        ({"compatibilities": {"foo": []}}, "capability_error", None),
        ({"compatibilities": {"jsonschema*": ["sideways"]}}, "capability_error", None),
        ([], "capability_error", None),
        (5, "capability_error", None),
    ],
)  # fmt: skip
def test_c_cap_04_09_10_13_14_16_18_and_19_amb_01_02_and_17_what_is_refused(
    registry: Client, sent: Any, code: str, args: Any
) -> None:
    before = registry.get("/export").body
    for method, path, body in (
        ("PATCH", "/capabilities", sent),
        ("PATCH", "/", {"capabilities": sent, "name": "n"}),
        ("PUT", "/", {"capabilities": sent, "dirs": {"d": {}}}),
    ):
        reply = registry.send(method, path, body)
        assert reply.error == (400, code, "/capabilities"), (method, path)
        assert args is None or reply.json["args"] == args
    assert registry.get("/export").body == before


def test_c_cap_10_formats_that_rules_are_for_stay(registry: Client) -> None:
    for method, path, sent in (
        ("PATCH", "/capabilities", {"formats": []}),
        ("PATCH", "/", {"capabilities": {"formats": []}}),
    ):
        assert registry.send(method, path, sent).error == (400, "capability_error", "/capabilities")
    changed = registry.patch("/capabilities", {"formats": [], "compatibilities": {}}).json
    assert (changed["formats"], changed["compatibilities"]) == ([], {})
    sent = {"compatibilities": FRESH["compatibilities"]}
    assert registry.patch("/capabilities", sent).error == (400, "capability_error", "/capabilities")


def test_c_cap_19_put_is_checked_as_well(registry: Client) -> None:
    for sent, code in (({"flag": []}, "capability_unknown"), ({"flags": ["x"]}, "capability_value"),
                       ({"specversions": []}, "capability_missing_value")):  # fmt: skip
        assert registry.put("/capabilities", sent).error == (400, code, "/capabilities")
    assert registry.put("/capabilities", None).error[:2] == (400, "missing_body")
    assert registry.put("/capabilities", b"{").error[:2] == (400, "parsing_data")
    assert capabilities(registry) == FRESH


# -- what is offered ----------------------------------------------------------------------------------------------

TYPES: Final = {"array", "boolean", "object", "map", "string"}


def test_c_cap_21_22_and_23_what_is_offered(registry: Client) -> None:
    reply = registry.get("/capabilitiesoffered")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    offers = reply.json
    assert list(offers) == list(FRESH)
    for name in ("flags", "formats", "ignores", "specversions", "versionmodes"):
        assert offers[name] == {"type": "array", "enum": FRESH[name], "item": {"type": "string"}}
    for name in ("pagination", "shortself"):
        assert offers[name] == {"type": "boolean", "enum": [False, True]}
    kinds = offers["available"]["attributes"]
    assert {kind: each["attributes"]["mutable"]["enum"] for kind, each in kinds.items()} == {
        ".xregistry": [False], "capabilities": [False, True], "capabilitiesoffered": [False],
        "entities": [False, True], "export": [False], "model": [False], "modelsource": [False, True],
    }  # fmt: skip
    rules = offers["compatibilities"]["attributes"]["jsonschema*"]
    assert rules == {"type": "array", "enum": ["backward", "forward", "full"], "item": {"type": "string"}}
    _check_offers(offers)


def _check_offers(offers: dict[str, Any]) -> None:
    """The form of each, whatever it is: row C-CAP-23."""
    for offer in offers.values():
        assert offer["type"] in TYPES
        assert ("item" in offer) == (offer["type"] in ("array", "map"))
        assert ("attributes" in offer) == (offer["type"] == "object")
        assert not {"min", "max"} & offer.keys()
        _check_offers(offer.get("attributes", {}))


def test_c_cap_22_whatever_is_offered_can_be_had(registry: Client) -> None:
    offers = registry.get("/capabilitiesoffered").json
    for name, offer in offers.items():
        for value in offer.get("enum", ()):
            wanted = {"manual", "1.0-rc4"} & set(FRESH[name]) | {value} if offer["type"] == "array" else value
            sent = {name: sorted(wanted) if isinstance(wanted, set) else wanted}
            expected = (200, sent[name]) if name != "versionmodes" else (400, None)
            reply = registry.patch("/capabilities", sent)
            assert (reply.status, reply.json.get(name)) == expected
    registry.patch("/", {"capabilities": None})
    for kind, offer in offers["available"]["attributes"].items():
        for mutable in reversed(offer["attributes"]["mutable"]["enum"]):
            if (kind, mutable) != ("capabilities", False):
                assert available(registry, **{kind: mutable})[kind] == {"mutable": mutable}


# -- what they do -------------------------------------------------------------------------------------------------

READ: Final = {".xregistry", "capabilitiesoffered", "export", "model", "modelsource", "capabilities"}


@pytest.mark.parametrize("kind", [".xregistry", "capabilitiesoffered", "export", "modelsource"])
def test_c_cap_05_amb_23_c_http_01_what_is_not_available(registry: Client, kind: str) -> None:
    assert kind not in available(registry, **{kind: None})
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"):
        assert registry.send(method, f"/{kind}", {}).error == (404, "api_not_found", f"/{kind}")
    for other in READ - {kind}:
        assert registry.get(f"/{other}").status == 200
    assert available(registry, **{kind: False})[kind] == {"mutable": False}
    assert registry.get(f"/{kind}").status == 200


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


def test_c_cap_05_what_is_not_mutable_is_not_by_any_way(registry: Client) -> None:
    available(registry, modelsource=False)
    source = registry.get("/modelsource").json
    before = registry.get("/export").body
    assert registry.put("/modelsource", {}).error == (400, "not_available", "/modelsource")
    assert registry.send("OPTIONS", "/modelsource").headers["Allow"] == "GET, OPTIONS"
    for method in ("PUT", "PATCH"):
        assert registry.send(method, "/", {"modelsource": source}).error == (400, "not_available", "/modelsource")
    assert registry.get("/export").body == before
    available(registry, capabilities=False)
    before = registry.get("/export").body
    for method, path, sent in (
        ("PUT", "/capabilities", FRESH),
        ("PATCH", "/capabilities", {}),
        ("PUT", "/", {"capabilities": FRESH}),
        ("PATCH", "/", {"capabilities": None}),
    ):
        assert registry.send(method, path, sent).error == (400, "not_available", "/capabilities")
    assert registry.send("OPTIONS", "/capabilities").headers["Allow"] == "GET, OPTIONS"
    assert registry.get("/export").body == before


def test_c_cap_06_entities_that_are_not_mutable(registry: Client) -> None:
    registry.put(X, {})
    registry.put("/dirs/d/files/f", b"")
    available(registry, entities=False)
    before = registry.get("/export").body
    for path in ("/", "/dirs", "/dirs/d", "/dirs/n", "/dirs/d/datas", X, f"{X}/meta", f"{X}/versions",
                 f"{X}/versions/1", "/dirs/d/files/f", "/dirs/d/files/f$details"):  # fmt: skip
        for method in ("PUT", "PATCH", "POST", "DELETE"):
            reply = registry.send(method, path, {})
            assert reply.error == (405, "action_not_supported", path)
            assert reply.json["args"] == {"action": method}
            assert reply.headers["Allow"] == "GET, OPTIONS"
        assert registry.send("OPTIONS", path).headers["Allow"] == "GET, OPTIONS"
    assert registry.patch("/", {"capabilities": None}).status == 405
    assert registry.get("/export").body == before
    assert registry.put("/modelsource", registry.get("/modelsource").json).status == 200
    assert available(registry, entities=True)["entities"] == {"mutable": True}
    assert registry.put("/dirs/n", {}).status == 201


@pytest.mark.parametrize(
    ("flag", "url"),
    [
        ("binary", "/dirs/d/files?inline=file&binary"),
        ("collections", "/?collections"),
        ("doc", "/?doc"),
        ("filter", "/dirs?filter=dirid=none"),
        ("inline", "/?inline=*"),
        ("sort", "/dirs?sort=dirid=desc"),
    ],
)
def test_c_cap_07_a_flag_that_is_not_listed_does_nothing(registry: Client, flag: str, url: str) -> None:
    registry.put("/dirs/d/files/f", b"{}", content_type="application/json")
    registry.put("/dirs/e", {})
    shown, plain = registry.get(url), registry.get(url.partition("&" if flag == "binary" else "?")[0])
    assert shown.json != plain.json or list(shown.json) != list(plain.json)
    registry.patch("/capabilities", {"flags": [each for each in FLAGS if each != flag]})
    epoch = registry.get("/").json["epoch"]
    assert epoch == 4
    without = registry.get(url)
    bare = registry.get(url.partition("&" if flag == "binary" else "?")[0])
    assert (without.status, without.body) == (200, bare.body)
    for bad in (f"/?{flag}=*bad", f"/dirs/e?{flag}=", f"/model?{flag}=%00"):
        assert registry.get(bad).status == 200


def test_c_cap_07_flags_of_writes_that_are_not_listed_do_nothing(registry: Client) -> None:
    registry.put(f"{X}/versions/1", {})
    registry.put(f"{X}/versions/2", {})
    registry.patch("/capabilities", {"flags": []})
    assert registry.patch(f"{X}?setdefaultversionid=1", {}).json["versionid"] == "2"
    assert registry.patch(f"{X}?setdefaultversionid=nope", {}).status == 200
    assert registry.patch("/dirs/d?ignore=epoch", {"epoch": 99}).error[1] == "mismatched_epoch"
    assert registry.get("/dirs?specversion=9").status == 200
    assert registry.put("/dirs/e?specversion=9&inline=bad&filter=x&sort=y", {}).status == 201
    assert registry.delete("/dirs/e?epoch=99").status == 204
    assert registry.get("/export").json["dirs"]["d"]["datas"]["x"]["meta"]["defaultversionid"] == "2"


def test_c_cap_08_an_ignore_that_is_not_listed(registry: Client) -> None:
    registry.put("/dirs/d", {})
    registry.patch("/capabilities", {"ignores": ["epoch"]})
    assert registry.put("/dirs/d?ignore=epoch", {"epoch": 99}).status == 200
    assert registry.put("/dirs/d?ignore", {"epoch": 99}).status == 200
    assert registry.put("/dirs/d?ignore", {"dirid": "e"}).error[1] == "mismatched_id"
    reply = registry.put("/dirs/d?ignore=epoch,id", {"dirid": "e"})
    assert (reply.error, reply.json["args"]["value"]) == ((400, "bad_ignore", "/dirs/d"), "id")
    registry.patch("/capabilities", {"ignores": []})
    assert registry.put("/dirs/d?ignore=epoch", {"epoch": 99}).error[1] == "bad_ignore"


def test_c_cap_11_pages(registry: Client) -> None:
    registry.post("/dirs", {"a": {}, "b": {}})
    assert list(registry.get("/dirs?limit=1").json) == ["a"]
    registry.patch("/capabilities", {"pagination": False})
    for limit in ("1", "0", "x", ""):
        reply = registry.get(f"/dirs?limit={limit}")
        assert (reply.status, list(reply.json), "rel=next" in reply.headers["Link"]) == (200, ["a", "b"], False)


def test_c_cap_13_versions_of_the_text(registry: Client) -> None:
    assert registry.get("/dirs?specversion=1.0-rc2").status == 200
    registry.patch("/capabilities", {"specversions": ["1.0-rc4"]})
    reply = registry.get("/dirs?specversion=1.0-rc2")
    assert reply.error == (400, "unsupported_specversion", "/dirs")
    assert reply.json["args"] == {"specversion": "1.0-rc2", "list": "1.0-rc4"}
    assert registry.get("/dirs?specversion=1.0-RC4").status == 200


def test_c_cap_14_amb_17_modes_of_versions(plain: Client) -> None:
    plain.patch("/capabilities", {"versionmodes": ["manual", "semver"]})
    assert plain.put("/modelsource", FIXTURE).error == (400, "model_error", "/model")
    plain.patch("/capabilities", {"versionmodes": ["*"]})
    assert plain.put("/modelsource", FIXTURE).status == 200
    reply = plain.patch("/capabilities", {"versionmodes": ["manual", "semver"]})
    assert reply.error == (400, "model_error", "/model")  # createdat is in use
    assert capabilities(plain)["versionmodes"] == FRESH["versionmodes"]
    assert plain.put("/", {"capabilities": None, "modelsource": {}}).status == 200


def test_c_reg_09_what_is_ignored_is_as_it_was(registry: Client) -> None:
    sent = {"capabilities": {"ignores": [], "flags": []}, "epoch": 99}
    assert registry.patch("/?ignore=epoch", sent).status == 200
    assert registry.patch("/?ignore=epoch", {"epoch": 99}).error[1] == "mismatched_epoch"
    sent = {"capabilities": {"ignores": ["*"], "flags": ["*"]}, "epoch": 99}
    assert registry.patch("/?ignore=epoch", sent).error[1] == "mismatched_epoch"
    assert registry.patch("/capabilities", {"flags": ["*"], "ignores": ["*"]}).status == 200
    before = registry.get("/export").body
    assert registry.patch("/?ignore=capabilities", {"capabilities": {"ignores": []}, "name": "n"}).status == 200
    assert capabilities(registry) == FRESH
    assert before != registry.get("/export").body


def test_c_reg_08_and_09_in_one_request_the_new_ones_govern_what_follows(registry: Client) -> None:
    reply = registry.patch("/?inline=capabilities", {"capabilities": {"flags": []}})
    assert (reply.status, "capabilities" in reply.json) == (200, False)
    reply = registry.patch("/?inline=capabilities", {"capabilities": {"flags": ["*"]}})
    assert reply.json["capabilities"]["flags"] == FRESH["flags"]


def test_specversions_ignore_the_patch_number(registry: Client) -> None:
    for sent in (["1.0.1-rc4"], ["1.0.7-RC4", "1.0-rc4"]):
        assert registry.patch("/capabilities", {"specversions": sent}).json["specversions"] == ["1.0-rc4"]
    assert (
        registry.put("/capabilities", {"specversions": ["1.0.0-rc4", "1.0.3-rc2"], "versionmodes": ["*"]}).status == 200
    )
    assert capabilities(registry)["specversions"] == ["1.0-rc2", "1.0-rc4"]


def test_version_mode_is_judged_by_the_model_of_the_same_request(plain: Client) -> None:
    def model(mode: str) -> dict[str, Any]:
        type_ = {"singular": "data", "versionmode": mode, "singleversionroot": mode != "manual"}
        return {"groups": {"dirs": {"singular": "dir", "resources": {"datas": type_}}}}

    assert plain.put("/modelsource", model("createdat")).status == 200
    least = {**capabilities(plain), "versionmodes": ["manual"]}
    assert plain.patch("/", {"capabilities": least}).error == (400, "model_error", "/model")
    assert plain.patch("/", {"capabilities": least, "modelsource": model("manual")}).status == 200
    assert plain.patch("/", {"capabilities": least, "modelsource": model("createdat")}).error[1] == "model_error"
    assert plain.get("/model").json["groups"]["dirs"]["resources"]["datas"]["versionmode"] == "manual"
