"""The OpenAPI document: valid, complete, and consistent with the behaviour of the registry."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.httpapi.conftest import BASE, FIXTURE, Client, serve
from wirebook.core.model.builtin import builtin_model
from wirebook.core.model.target import METHODS
from wirebook.httpapi.routes import FIXED
from wirebook.storage.database import Database

MODELS = {"builtin": builtin_model(), "empty": {}, "fixture": FIXTURE}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


@pytest.fixture(params=MODELS)
def served(request: pytest.FixtureRequest, database: Database) -> Client:
    """A registry with one of the test models."""
    return serve(database, MODELS[request.param])


def described(client: Client) -> dict[str, Any]:
    reply = client.get("/.wirebook/openapi.json")
    assert reply.status == 200
    document: dict[str, Any] = reply.json
    return document


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    whole = {"$schema": DIALECT, "components": document["components"], **schema}
    return jsonschema_rs.validator_for(whole)


def test_openapi_document_is_valid(served: Client) -> None:
    OpenAPIV31SpecValidator(described(served)).validate()


def test_openapi_schemas_are_valid_json_schemas(served: Client) -> None:
    document = described(served)
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": DIALECT, **schema})


def test_openapi_paths_follow_the_model_and_the_routes(registry: Client) -> None:
    document = described(registry)
    version = "/dirs/{dirid}/files/{fileid}/versions/{versionid}"
    assert {name for name in document["paths"][version] if name != "parameters"} == {"delete", "get", "put"}
    assert {name for name in document["paths"][f"{version}$details"] if name != "parameters"} == {
        method.lower() for method in METHODS["version"]
    }
    assert "/dirs/{dirid}/datas/{dataid}/versions/{versionid}$details" not in document["paths"]
    assert "/boxes/{boxid}/files/{fileid}/meta" in document["paths"]
    for path, route in FIXED.items():
        assert {method.upper() for method in document["paths"][path]} == set(route.handlers)


def test_openapi_operation_ids_are_unique(served: Client) -> None:
    operations = [
        operation
        for path in described(served)["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert all({"4XX", "5XX"} <= operation["responses"].keys() for operation in operations)


def test_openapi_flags_follow_the_capabilities(registry: Client) -> None:
    assert registry.patch("/capabilities", {"flags": ["inline"], "pagination": False}).status == 200
    document = described(registry)
    assert document["components"]["parameters"].keys() == {"inline", *CONDITIONS}
    assert document["paths"]["/dirs"]["get"]["parameters"] == [
        {"$ref": f"#/components/parameters/{name}"} for name in ("inline", *CONDITIONS)
    ]


CONDITIONS = ("If-Match", "If-None-Match")


def test_openapi_writes_have_preconditions_and_their_errors(registry: Client) -> None:
    document = described(registry)
    writes = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in ("put", "patch", "post", "delete")
    ]
    assert writes
    for path, method, operation in writes:
        assert {"412", "503", "507"} <= operation["responses"].keys(), (path, method)
        assert ({"413", "415"} <= operation["responses"].keys()) == ("requestBody" in operation)
        named = [parameter.get("$ref", "").rpartition("/")[2] for parameter in operation["parameters"]]
        assert set(CONDITIONS) <= set(named), (path, method)
    answers = document["components"]["responses"]
    assert set(answers["unsupported"]["headers"]) == {"Accept-Encoding"}
    assert set(answers["unavailable"]["headers"]) == {"Retry-After"}


SENT = {
    "name": "A dir",
    "labels": {"a": "b"},
    "xint": -5,
    "xobj": {"a": "x", "n": 1},
    "files": {"f": {"file": {"a": 1}, "xarr": [1], "versions": {"1": {"ancestorid": "1"}, "2": {"xdec": 1.5}}}},
    "datas": {"d": {"xany": [None, {}], "xxid": "/dirs/d", "meta": {"compatibility": "backward"}}},
}


def test_requests_and_responses_match_the_openapi_schemas(registry: Client) -> None:
    assert validator(described(registry), {"$ref": "#/components/schemas/dirs"}).is_valid(SENT)
    assert registry.put("/dirs/d", SENT).status == 201
    document = described(registry)
    for url, schema in {
        "/?inline=*": "registry",
        "/dirs/d?inline=*": "dirs",
        "/dirs/d?inline=*&doc": "dirs",
        "/dirs/d?collections": "dirs",
        "/dirs/d/files/f$details?inline=*": "dirs.files",
        "/dirs/d/files/f/versions/2$details": "dirs.files.versions",
        "/dirs/d/datas/d/meta": "dirs.datas.meta",
        "/capabilities": "capabilities",
        "/dirs/none": "problem",
    }.items():
        faults = validator(document, {"$ref": f"#/components/schemas/{schema}"}).iter_errors(registry.get(url).json)
        assert [str(fault) for fault in faults] == [], url


@pytest.mark.parametrize(
    ("type_", "content"),
    [
        ("dirs", {"xint": "1"}),
        ("dirs", {"labels": {"A": "b"}}),
        ("dirs", {"unknown": 1}),
        ("dirs", {"files": {"$": {}}}),
        ("dirs.files", {"xobj": {"other": "x"}}),
        ("dirs.files", {"xuint": -1}),
        ("dirs.files", {"xarr": ["x"]}),
        ("dirs.datas.meta", {"compatibility": "sideways"}),
        ("dirs.files.versions", {"metaurl": "/"}),
    ],
)
def test_rejected_request_does_not_match_the_openapi_schema(registry: Client, type_: str, content: Any) -> None:
    assert not validator(described(registry), {"$ref": f"#/components/schemas/{type_}"}).is_valid(content)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("2030-12-19T06:00:00", True),
        ("2030-12-19T06:00:00.25", True),
        ("2030-12-19T06:00:00Z", True),
        ("2030-12-19t06:00:00+01:00", True),
        ("2030-12-19", False),
        ("2030-12-19T06:00", False),
        ("2030-12-19 06:00:00Z", False),
    ],
)
def test_openapi_timestamps_match_what_is_accepted(registry: Client, text: str, fits: bool) -> None:
    check = jsonschema_rs.validator_for(
        {"$schema": DIALECT, "components": described(registry)["components"], "$ref": "#/components/schemas/dirs"},
        validate_formats=True,
    )
    assert check.is_valid({"createdat": text}) is fits
    assert (registry.put("/dirs/d", {"createdat": text}).status == 201) is fits
    assert not fits or check.is_valid(registry.get("/dirs/d").json)


IFVALUES: dict[str, Any] = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": {
                "kind": {
                    "type": "string",
                    "ifvalues": {
                        "Box.1": {"siblingattributes": {"size": {"type": "integer", "required": True}}},
                        "any": {"siblingattributes": {"*": {"type": "boolean"}}},
                    },
                },
                "count": {"type": "integer", "ifvalues": {"3": {"siblingattributes": {"third": {"type": "string"}}}}},
                "mood": {"type": "string", "enum": ["Glad", "sad"]},
            },
        }
    }
}


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        ({"kind": "box.1", "size": 3}, True),
        ({"kind": "Box.1"}, False),
        ({"kind": "Box.1", "size": "3"}, False),
        ({"kind": "box11", "size": 3}, False),
        ({"kind": "any", "other": True}, True),
        ({"kind": "any", "other": 1}, False),
        ({"count": 3, "third": "x"}, True),
        ({"count": 4, "third": "x"}, False),
        ({"mood": "GLAD"}, True),
        ({"mood": "mad"}, False),
        ({"mood": None}, True),
    ],
)
def test_openapi_ifvalues_match_what_is_accepted(database: Database, content: Any, fits: bool) -> None:
    client = serve(database, IFVALUES)
    check = validator(described(client), {"$ref": "#/components/schemas/dirs"})
    assert check.is_valid(content) is fits
    assert (client.put("/dirs/d", content).status == 201) is fits


def test_responses_for_older_specversions_match_the_openapi_schemas(database: Database) -> None:
    registry = serve(database, builtin_model())
    path = "/messagegroups/g/messages/m"
    registry.put(path, {"versionid": "1"})
    assert (
        registry.put(
            f"{path}/versions/2", {"ancestorid": "1", "basemessageuri": "/messagegroups/g/messages/base"}
        ).status
        == 201
    )
    document = described(registry)
    schemas = {
        path: "#/components/schemas/messagegroups.messages",
        f"{path}/versions/2": "#/components/schemas/messagegroups.messages.versions",
    }
    for path, schema in schemas.items():
        answer = registry.get(f"{path}?specversion=1.0-rc2").json
        assert {"ancestor", "basemessageurl"} <= answer.keys()
        validator(document, {"$ref": schema}).validate(answer)
        assert all(
            document["components"]["schemas"][schema.rpartition("/")[2]]["properties"][name]["readOnly"]
            for name in ("ancestor", "basemessageurl")
        )


def test_openapi_types_with_equal_names_have_distinct_parameters(database: Database) -> None:
    model = {"groups": {"as": {"singular": "a", "resources": {"bs": {"singular": "a"}}}}}
    document = described(serve(database, model))
    assert "/as/{aid}/bs/{aid2}/versions/{versionid}" in document["paths"]
    OpenAPIV31SpecValidator(document).validate()


def test_openapi_server_is_the_base_url(registry: Client) -> None:
    assert described(registry)["servers"] == [{"url": BASE}]
    assert json.loads(json.dumps(described(registry))) == described(registry)
