"""The built-in models of a new registry: messages, endpoints and schemas."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.httpapi.conftest import Client, Reply
from wirebook.core.model.builtin import builtin_model
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.model_file import initial_model
from wirebook.httpapi.setup import NO_FETCH, make_registry, make_service
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database

TEXTS = "spec/xregistry-1.0-rc4"
MESSAGE = "/messagegroups/g/messages/m"
ENDPOINT = "/endpoints/e"
SCHEMA = "/schemagroups/g/schemas/s"
DRAFT7 = "JsonSchema/draft-07"
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}
Source = dict[str, Any]


def serve(database: Database, model: Source) -> Client:
    make_registry(database, "test", model, OFFER)
    return Client(make_service(database, SchemaValidator(as_declared=True), OFFER), database)


@pytest.fixture
def fresh(database: Database) -> Client:
    return serve(database, builtin_model())


def put(client: Client, path: str, entity: Source) -> Source:
    reply = client.put(path, entity)
    assert reply.status in (200, 201), reply.body
    stored: Source = reply.json
    return stored


def refused(client: Client, path: str, entity: Source) -> tuple[str, str]:
    """The error of an attribute, and its name; nothing is changed."""
    before = client.get("/?inline").body
    body = client.put(path, entity).json
    assert body["subject"] in (path, f"{path.removesuffix('$details')}/versions/1"), body
    assert client.get("/?inline").body == before
    args = body["args"]
    return body["type"].rpartition("#")[2], args.get("name") or args.get("list") or args.get("path")


# -- messages ---------------------------------------------------------------------------------------------------------


def test_messages_have_no_document_and_one_version(fresh: Client) -> None:
    type_ = fresh.get("/model").json["groups"]["messagegroups"]["resources"]["messages"]
    assert (type_["singular"], type_["hasdocument"], type_["maxversions"]) == ("message", False, 1)
    message = put(fresh, MESSAGE, {"envelope": "CloudEvents/1.0", "envelopemetadata": {}})
    assert (message["messageid"], message["versionid"], message["self"].endswith(MESSAGE)) == ("m", "1", True)
    assert put(fresh, f"{MESSAGE}/versions/2", {"name": "n"})["isdefault"] is True
    message = fresh.get(MESSAGE).json
    assert (message["versionid"], message["versionscount"], message["name"]) == ("2", 1, "n")
    assert fresh.patch(f"{MESSAGE}/meta", {"defaultversionsticky": True}).error[1] == "setdefaultversionsticky_false"


@pytest.mark.parametrize("envelope", ["CloudEvents/1.0", "cloudevents/1.0", "CLOUDEVENTS/1.0"])
def test_envelope_defines_its_metadata(fresh: Client, envelope: str) -> None:
    metadata = {"type": {"value": "a.b"}, "source": {}, "time": {}, "subject": {"type": "string"}, "ext": {}}
    options = {"mode": "structured", "format": "application/cloudevents+json", "more": [1]}
    message = {"envelope": envelope, "envelopemetadata": metadata, "envelopeoptions": options}
    stored = put(fresh, MESSAGE, message)
    assert (stored["envelope"], stored["envelopeoptions"]) == (envelope, options)
    assert stored["envelopemetadata"] == {
        "type": {"type": "string", "value": "a.b", "required": True},
        "source": {"type": "uritemplate", "required": True},
        "time": {"type": "timestamp", "required": False},
        "subject": {"type": "string", "required": False},
        "ext": {"type": "string", "required": False},
    }
    assert fresh.put("/messagegroups/g/messages/n", stored["envelopemetadata"]).error[1] == "unknown_attribute"
    again = {**fresh.get(MESSAGE).json, "name": "again"}
    assert put(fresh, MESSAGE, again)["envelopemetadata"] == stored["envelopemetadata"]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"envelopemetadata": {}}, "envelopemetadata"),
        ({"envelopeoptions": {}}, "envelopeoptions"),
        ({"envelope": "SOAP/1.2", "envelopemetadata": {}}, "envelopemetadata"),
        ({"envelope": "CloudEvents", "envelopemetadata": {}}, "envelopemetadata"),
        ({"protocoloptions": {}}, "protocoloptions"),
        ({"protocol": "SMTP", "protocoloptions": {}}, "protocoloptions"),
        ({"protocol": "KAFKA", "protocoloptions": {"qos": 1}}, "protocoloptions.qos"),
        ({"protocol": "MQTT/3.1.1", "protocoloptions": {"content_type": "a"}}, "protocoloptions.content_type"),
        ({"protocol": "AMQP/1.0", "protocoloptions": {"header": {"x": 1}}}, "protocoloptions.header.x"),
        ({"basemessage": MESSAGE}, "basemessage"),
        ({"x": 1}, "x"),
        ({"file": "a"}, "file"),
        ({"message": {}}, "message"),
    ],
)
def test_unknown_message_attribute_is_rejected(fresh: Client, message: Source, name: str) -> None:
    assert refused(fresh, MESSAGE, message) == ("unknown_attribute", name)


def metadata(**attributes: Any) -> Source:
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": attributes}


def options(protocol: str, **members: Any) -> Source:
    return {
        "protocol": protocol,
        "protocoloptions": {name.replace("__", "-"): member for name, member in members.items()},
    }


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (metadata(id={"type": "integer"}), "envelopemetadata.id.type"),
        (metadata(id={"required": False}), "envelopemetadata.id.required"),
        (metadata(specversion={"value": "0.3"}), "envelopemetadata.specversion.value"),
        (metadata(time={"type": "string"}), "envelopemetadata.time.type"),
        (metadata(dataschema={"value": "{"}), "envelopemetadata.dataschema.value"),
        (metadata(ext="a"), "envelopemetadata.ext"),
        (metadata(Ext={}), "envelopemetadata.Ext"),
        ({"envelope": "CloudEvents/1.0", "envelopeoptions": {"mode": "batch"}}, "envelopeoptions.mode"),
        (options("AMQP/1.0", properties={"message-id": {"type": "int"}}), "protocoloptions.properties.message-id.type"),
        (options("AMQP/1.0", header={"priority": "high"}), "protocoloptions.header.priority"),
        (options("AMQP/1.0", application__properties={"A": {}}), "protocoloptions.application-properties.A"),
        (options("MQTT/5.0", qos="1"), "protocoloptions.qos"),
        (options("MQTT/5.0", payload_format_indicator=2), "protocoloptions.payload_format_indicator"),
        (options("MQTT/5.0", topic_name="a/{"), "protocoloptions.topic_name"),
        (options("KAFKA", headers=[]), "protocoloptions.headers"),
        (options("HTTP", headers={}), "protocoloptions.headers"),
        (options("NATS", subject=5), "protocoloptions.subject"),
        ({"dataschemaxid": "/nothing/x"}, "dataschemaxid"),
        ({"dataschemaxid": "schemas/x"}, "dataschemaxid"),
        ({"dataschemauri": "a b"}, "dataschemauri"),
        ({"datacontenttype": 5}, "datacontenttype"),
        ({"basemessageuri": "/messagegroups/g"}, "basemessageuri"),
        ({"basemessageuri": "/endpoints/e/messages/m"}, "basemessageuri"),
        ({"basemessageuri": "/schemagroups/g/schemas/s"}, "basemessageuri"),
        ({"basemessageuri": f"{MESSAGE}/meta"}, "basemessageuri"),
        ({"basemessageuri": "/a"}, "basemessageuri"),
    ],
)
def test_invalid_message_value_is_rejected(fresh: Client, message: Source, name: str) -> None:
    assert refused(fresh, MESSAGE, message) == ("invalid_attribute", name)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (options("MQTT/5.0", user_properties=[{}]), "protocoloptions.user_properties[0].name"),
        (options("KAFKA", headers={"a": {}}), "protocoloptions.headers.a.name"),
        (options("HTTP", headers=[{"name": "a"}, {"value": "b"}]), "protocoloptions.headers[1].name"),
    ],
)
def test_missing_message_attribute_is_rejected(fresh: Client, message: Source, name: str) -> None:
    assert refused(fresh, MESSAGE, message) == ("required_attribute_missing", name)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            options("AMQP/1.0", header={}),
            {"header": {"durable": False, "priority": 4, "first-acquirer": False, "delivery-count": 0}},
        ),
        (options("AMQP/1.0", properties={"subject": {}}), {"properties": {"subject": {"required": True}}}),
        (options("AMQP/1.0", footer={"a-b": {}}), {"footer": {"a-b": {"type": "string", "required": False}}}),
        (options("mqtt/3.1.1", qos=1, topic_name="a/{b}"), {"qos": 1, "topic_name": "a/{b}"}),
        (options("MQTT/5.0", user_properties=[{"name": "n"}]), {"user_properties": [{"name": "n"}]}),
        (options("Kafka", headers={"a": {"name": "n"}}), {"headers": {"a": {"name": "n", "required": False}}}),
        (
            options("http", query=[{"name": "n"}], path="/{a}"),
            {"query": [{"name": "n", "required": False}], "path": "/{a}"},
        ),
        (options("NATS", headers=[{}], reply="{r}"), {"headers": [{"required": False}], "reply": "{r}"}),
    ],
)
def test_protocol_defines_its_options(fresh: Client, message: Source, expected: Source) -> None:
    stored = put(fresh, MESSAGE, message)
    assert (stored["protocol"], stored["protocoloptions"]) == (message["protocol"], expected)


def test_options_of_another_protocol_are_rejected(fresh: Client) -> None:
    before = put(fresh, MESSAGE, options("KAFKA", topic="t"))
    assert fresh.patch(MESSAGE, {"protocol": "NATS"}).error[1] == "unknown_attribute"
    assert fresh.patch(MESSAGE, {"protocol": None}).error[1] == "unknown_attribute"
    assert fresh.get(MESSAGE).json == before
    changed = fresh.patch(MESSAGE, options("NATS", subject="s")).json
    assert changed["protocoloptions"] == {"subject": "s"}
    cleared = fresh.patch(MESSAGE, {"protocol": None, "protocoloptions": None})
    assert (cleared.status, {"protocol", "protocoloptions"} & cleared.json.keys()) == (200, set())


@pytest.mark.parametrize(
    "base", [MESSAGE, f"{MESSAGE}/versions/v1", "http://h/messages/m", "#/messagegroups/g/messages/m", "urn:m", "m"]
)
def test_message_base_is_stored(fresh: Client, base: str) -> None:
    """They need not be there, and are not looked at where they are elsewhere."""
    assert put(fresh, MESSAGE, {"basemessageuri": base})["basemessageuri"] == base


def test_message_schemas_are_stored(fresh: Client) -> None:
    message = {
        "dataschemaformat": DRAFT7,
        "dataschema": {"A b": [1, {"c": True}]},
        "dataschemauri": "#/schemagroups/g/schemas/s",
        "dataschemaxid": SCHEMA,
        "datacontenttype": "application/json",
    }
    assert put(fresh, MESSAGE, message).items() >= message.items()
    for xid in (f"{SCHEMA}/versions/1", "/schemagroups/g", MESSAGE):
        assert put(fresh, MESSAGE, {"dataschemaxid": xid})["dataschemaxid"] == xid


def test_messagegroup_accepts_extensions_and_other_protocols(fresh: Client) -> None:
    group = {"envelope": "CloudEvents/1.0", "protocol": "KAFKA", "x": {"Y": [1]}}
    assert put(fresh, "/messagegroups/g", group).items() >= group.items()
    assert refused(fresh, "/messagegroups/g", {"envelope": 5}) == ("invalid_attribute", "envelope")


# -- endpoints --------------------------------------------------------------------------------------------------------


def test_endpoint_contains_messages(fresh: Client) -> None:
    put(fresh, MESSAGE, {"name": "n"})
    message = put(fresh, f"{ENDPOINT}/messages/m", {"meta": {"xref": MESSAGE}})
    assert (message["name"], message["xid"]) == ("n", f"{ENDPOINT}/messages/m")
    assert put(fresh, f"{ENDPOINT}/messages/own", metadata(id={}))["envelopemetadata"]["id"]["required"] is True
    assert fresh.get(ENDPOINT).json["messagescount"] == 2


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ({"usage": "producer"}, "usage"),
        ({"usage": ["producer", "reader"]}, "usage[1]"),
        ({"usage": [None]}, "usage[0]"),
        ({"channel": 5}, "channel"),
        ({"messagegroups": ["/endpoints/e"]}, "messagegroups[0]"),
        ({"messagegroups": ["/schemagroups/g"]}, "messagegroups[0]"),
        ({"messagegroups": "/messagegroups/g"}, "messagegroups"),
        ({"deprecated": {"removal": "soon"}}, "deprecated.removal"),
        (options("MQTT/5.0", qos=3), "protocoloptions.qos"),
        (options("MQTT/5.0", willmessage="/messagegroups/g"), "protocoloptions.willmessage"),
        (options("MQTT/3.1.1", cleansession="yes"), "protocoloptions.cleansession"),
        (options("AMQP/1.0", distribution__mode="steal"), "protocoloptions.distribution-mode"),
        (options("AMQP/1.0", link__properties={"a": 1}), "protocoloptions.link-properties.a"),
        (options("HTTP", endpoints=[{"uri": 5}]), "protocoloptions.endpoints[0].uri"),
        (options("HTTP", endpoints={"uri": "http://h"}), "protocoloptions.endpoints"),
        (options("KAFKA", acks="all"), "protocoloptions.acks"),
        (options("KAFKA", autooffsetreset="first"), "protocoloptions.autooffsetreset"),
        (
            options("KAFKA", endpoints=[{"bootstrap.servers": "a:1"}]),
            "protocoloptions.endpoints[0]['bootstrap.servers']",
        ),
        (options("NATS", authorization={}), "protocoloptions.authorization"),
        ({"envelope": "CloudEvents/1.0", "envelopeoptions": {"mode": "batch"}}, "envelopeoptions.mode"),
    ],
)
def test_invalid_endpoint_value_is_rejected(fresh: Client, endpoint: Source, name: str) -> None:
    assert refused(fresh, ENDPOINT, endpoint) == ("invalid_attribute", name)


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("AMQP/1.0", {"deployed": True, "durable": False, "distribution-mode": "move"}),
        ("MQTT/5.0", {"deployed": True, "qos": 0, "retain": False}),
        ("mqtt/3.1.1", {"deployed": True, "qos": 0, "retain": False, "cleansession": True}),
        ("HTTP", {"deployed": True, "method": "POST", "apikeyin": "header", "plainscheme": "basic"}),
        ("NATS", {"deployed": True}),
    ],
)
def test_endpoint_options_have_defaults(fresh: Client, protocol: str, expected: Source) -> None:
    assert put(fresh, ENDPOINT, options(protocol))["protocoloptions"] == expected
    more = {"deployed": False, "endpoints": [{"uri": "x://h:1", "more": 1}], "Extra": 1}
    assert refused(fresh, "/endpoints/n", options(protocol, **more)) == ("invalid_attribute", "protocoloptions.Extra")
    endpoint = put(fresh, ENDPOINT, options(protocol, **{name: more[name] for name in ("deployed", "endpoints")}))
    assert endpoint["protocoloptions"] == {**expected, "deployed": False, "endpoints": more["endpoints"]}
    assert "protocoloptions" not in put(fresh, ENDPOINT, {"protocol": protocol})


def test_kafka_endpoint_options_have_defaults(fresh: Client) -> None:
    endpoint = put(fresh, ENDPOINT, options("KAFKA", endpoints=[{"bootstrap.servers": ["a:1"]}], acks=-1))
    stored = endpoint["protocoloptions"]
    expected = {"bootstrap.servers": ["a:1"], "security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN"}
    assert (stored["endpoints"], stored["acks"], stored["deployed"]) == ([expected], -1, True)


def test_endpoint_accepts_extensions_and_other_protocols(fresh: Client) -> None:
    endpoint = {
        "usage": ["subscriber", "consumer"],
        "channel": "c",
        "messagegroups": ["/messagegroups/g", "http://h/g", "#/messagegroups/g"],
        "deprecated": {"effective": "2030-01-01T00:00:00Z", "docs": "http://h/d", "more": 1},
        "other": {"A": 1},
        "protocol": "SMTP",
        "protocoloptions": {"anything": 1},
    }
    assert put(fresh, ENDPOINT, endpoint).items() >= endpoint.items()


# -- schemas ----------------------------------------------------------------------------------------------------------


def test_c_sch_01_and_05_the_types_of_schemas(fresh: Client) -> None:
    group = fresh.get("/model").json["groups"]["schemagroups"]
    type_ = group["resources"]["schemas"]
    names = ("singular", "hasdocument", "maxversions", "validateformat", "validatecompatibility", "strictvalidation")
    assert (group["singular"], [type_[name] for name in names]) == (
        "schemagroup",
        ["schema", True, 0, True, True, False],
    )
    assert put(fresh, "/schemagroups/g", {"x": {"Y": 1}})["x"] == {"Y": 1}
    details = put(fresh, f"{SCHEMA}$details", {"format": "Other/1", "x": [1], "schema": "text"})
    assert (details["x"], details["formatvalidated"], bool(details["formatvalidatedreason"])) == ([1], False, True)
    assert details["self"].endswith(f"{SCHEMA}$details")


def test_c_sch_02_every_version_has_the_format_of_all(fresh: Client) -> None:
    assert refused(fresh, f"{SCHEMA}$details", {"schema": OBJECT}) == ("required_attribute_missing", "format")
    assert fresh.put(SCHEMA, b"{}").error == (400, "required_attribute_missing", f"{SCHEMA}/versions/1")
    put(fresh, f"{SCHEMA}/versions/1$details", {"format": DRAFT7, "schema": OBJECT})
    put(fresh, f"{SCHEMA}/versions/2$details", {"format": DRAFT7.upper(), "schema": OBJECT})
    other = {"format": "JsonSchema/draft/2020-12", "schema": OBJECT}
    assert fresh.put(f"{SCHEMA}/versions/3$details", other).error == (400, "mismatched_version_attribute", SCHEMA)
    assert fresh.get(f"{SCHEMA}/versions").json.keys() == {"1", "2"}
    group = fresh.patch("/schemagroups/g", {"format": DRAFT7})
    assert group.status == 200
    assert fresh.patch("/schemagroups/g", {"format": "Avro/1.9"}).error == (400, "constraint_failure", SCHEMA)
    avro = fresh.put("/schemagroups/g/schemas/a$details", {"format": "Avro/1.9", "schema": {"type": "int"}})
    assert avro.error == (400, "constraint_failure", "/schemagroups/g/schemas/a")
    assert avro.json["args"] == {"kind": "equals", "path": "format"}
    assert fresh.get("/schemagroups/g/schemas").json.keys() == {"s"}


def test_c_sch_03_a_group_without_a_format_has_schemas_of_any(fresh: Client) -> None:
    put(fresh, f"{SCHEMA}$details", {"format": DRAFT7, "schema": OBJECT})
    put(fresh, "/schemagroups/g/schemas/a$details", {"format": "Avro/1.9", "schema": {"type": "int"}})
    schemas = fresh.get("/schemagroups/g/schemas").json
    assert {version["format"] for version in schemas.values()} == {DRAFT7, "Avro/1.9"}


def test_c_sch_04_a_group_gives_its_format(fresh: Client) -> None:
    put(fresh, "/schemagroups/g", {"constraints": {"schemas.format": {"default": DRAFT7}}})
    assert put(fresh, f"{SCHEMA}$details", {"schema": OBJECT})["format"] == DRAFT7
    reply = fresh.put("/schemagroups/g/schemas/d", json.dumps(OBJECT).encode(), content_type="application/json")
    assert (reply.status, reply.headers["xRegistry-format"]) == (201, DRAFT7)
    assert reply.headers["xRegistry-formatvalidated"] == "true"
    own = put(fresh, "/schemagroups/g/schemas/a$details", {"format": "Avro/1.9", "schema": {"type": "int"}})
    assert own["format"] == "Avro/1.9"


STRUCTURE = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "http://h/a", "name": "A", "type": "string"}
XSD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a"/></xs:schema>'


@pytest.mark.parametrize(
    ("format_", "document"),
    [(DRAFT7, OBJECT), ("Avro/1.9", {"type": "int"}), ("JsonStructure/draft-04", STRUCTURE)],
)
def test_c_sch_07_json_is_shown_as_json(fresh: Client, format_: str, document: Source) -> None:
    stored = put(fresh, f"{SCHEMA}$details?inline=schema", {"format": format_, "schema": document})
    assert (stored["schema"], stored["contenttype"], stored["formatvalidated"]) == (document, "application/json", True)
    put(fresh, f"{SCHEMA}$details", {"format": format_, "schema": document, "contenttype": "application/x+json"})
    assert fresh.get(f"{SCHEMA}$details?inline=schema").json["schema"] == document


@pytest.mark.parametrize(
    ("format_", "document"), [("XSD/1.1", XSD), ("Protobuf/3", 'syntax = "proto3"; message M { string a = 1; }')]
)
def test_c_sch_07_texts_are_shown_as_strings(fresh: Client, format_: str, document: str) -> None:
    def stored_document(**attributes: str) -> Source:
        put(fresh, f"{SCHEMA}$details", {"format": format_, "schema": document, **attributes})
        return {
            name: value
            for name, value in fresh.get(f"{SCHEMA}$details?inline=schema").json.items()
            if name in ("schema", "schemabase64")
        }

    assert stored_document(contenttype="text/plain") == {"schema": document}
    encoded = base64.b64encode(document.encode()).decode()
    assert stored_document(contenttype="application/xml") == {"schemabase64": encoded}


@pytest.mark.parametrize(("format_", "syntax"), [("Protobuf/3", "proto2"), ("protobuf/2", "proto3")])
def test_c_sch_06_a_document_of_another_version_than_its_format(fresh: Client, format_: str, syntax: str) -> None:
    document = f'syntax = "{syntax}"; message M {{ optional string a = 1; }}'.encode()
    reply = fresh.put(SCHEMA, document, xregistry_format=format_)
    assert reply.error == (400, "format_violation", f"{SCHEMA}/versions/1")
    assert (reply.json["args"], syntax in reply.json["detail"]) == ({"format": format_}, True)
    assert fresh.get(SCHEMA).status == 404


def test_c_sch_08_documents_with_their_media_types(fresh: Client) -> None:
    for id_, type_ in (("1", "application/schema+json"), ("2", "application/json")):
        document = json.dumps({**OBJECT, "title": id_}).encode()
        assert (
            fresh.put(f"{SCHEMA}/versions/{id_}", document, xregistry_format=DRAFT7, content_type=type_).status == 201
        )
    replies = [fresh.get(path) for path in (SCHEMA, f"{SCHEMA}/versions/1", f"{SCHEMA}/versions/2")]
    assert [reply.json["title"] for reply in replies] == ["2", "1", "2"]
    types = [reply.headers["Content-Type"] for reply in replies]
    assert types == ["application/json", "application/schema+json", "application/json"]


def test_c_sch_09_ids_of_versions_are_numbers(fresh: Client) -> None:
    ids = [fresh.post(SCHEMA, json.dumps(OBJECT).encode(), xregistry_format=DRAFT7).headers for _ in range(10)]
    assert [id_["xRegistry-versionid"] for id_ in ids] == [str(number) for number in range(1, 11)]
    assert fresh.get(f"{SCHEMA}$details").json["versionid"] == "10"


@pytest.mark.parametrize("rule", ["backward", "BACKWARD_TRANSITIVE", "full"])
def test_c_sch_10_incompatible_versions_are_refused(fresh: Client, rule: str) -> None:
    put(fresh, f"{SCHEMA}/versions/1$details", {"format": DRAFT7, "schema": OBJECT})
    assert fresh.patch(f"{SCHEMA}/meta", {"compatibility": rule}).json["compatibility"] == rule
    before = fresh.get("/schemagroups?inline").body
    narrower = {"format": DRAFT7, "schema": {**OBJECT, "required": ["a"]}}
    reply: Reply = fresh.put(f"{SCHEMA}/versions/2$details", narrower)
    assert reply.error == (400, "compatibility_violation", SCHEMA)
    assert reply.json["args"] == {"compat": rule}
    assert fresh.get("/schemagroups?inline").body == before
    details = put(fresh, f"{SCHEMA}/versions/2$details", {"format": DRAFT7, "schema": {**OBJECT, "title": "t"}})
    assert details["compatibilityvalidated"] is True


# -- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["message", "schema"])
def test_c_sch_11_published_models_load_as_they_are(database: Database, shared: Path, name: str) -> None:
    source = json.loads((shared / TEXTS / name / "model.json").read_text())
    client = serve(database, {})
    assert client.put("/modelsource", source).json == source
    plural = f"{name}groups"
    assert client.get("/model").json["groups"].keys() == {plural}
    assert client.put(f"/{plural}/g", {}).status == 201


def test_c_ce_01_the_composite_model(database: Database, shared: Path, tmp_path: Path) -> None:
    """Of files beside each other, as it is published; its fragments are `#groups`."""
    for name in ("endpoint", "message", "schema", "cloudevents"):
        text = (shared / TEXTS / name / "model.json").read_text()
        (tmp_path / f"{name}.json").write_text(text.replace("../", "").replace("/model.json", ".json"))
    client = serve(database, initial_model(tmp_path / "cloudevents.json", NO_FETCH))
    model = client.get("/model").json
    assert list(model["groups"]) == ["endpoints", "messagegroups", "schemagroups"]
    assert model["groups"]["endpoints"]["resources"] == model["groups"]["messagegroups"]["resources"]
    assert "$include" not in json.dumps(client.get("/modelsource").json)
    put(client, MESSAGE, {})
    assert put(client, f"{ENDPOINT}/messages/m", {"meta": {"xref": MESSAGE}})["messageid"] == "m"
    assert put(client, ENDPOINT, {"messagegroups": ["/messagegroups/g"]})["messagescount"] == 1


FILE: Source = {
    "$schema": "https://cloudevents.io/schemas/registry",
    "specversion": "1.0-rc4",
    "registryid": "test",
    "endpointsurl": "http://elsewhere/endpoints",
    "endpointscount": 1,
    "endpoints": {
        "e": {
            "usage": ["producer"],
            "protocol": "KAFKA",
            "protocoloptions": {"topic": "t"},
            "messagegroups": ["#/messagegroups/g", "http://h/messagegroups/g"],
        }
    },
    "messagegroups": {
        "g": {
            "envelope": "CloudEvents/1.0",
            "messages": {
                "m": {
                    "envelope": "CloudEvents/1.0",
                    "envelopemetadata": {"type": {"value": "a.b"}},
                    "dataschemaformat": DRAFT7,
                    "dataschemauri": "#/schemagroups/g/schemas/s",
                },
                "n": {
                    "dataschemauri": "other.cereg#/schemagroups/g/schemas/s",
                    "basemessageuri": "#/messagegroups/g/messages/m",
                },
            },
        }
    },
    "schemagroups": {"g": {"schemas": {"s": {"format": DRAFT7, "schema": OBJECT}}}},
}


def test_c_ce_02_and_04_a_file_is_put_whole(fresh: Client) -> None:
    stored = put(fresh, "/?inline", FILE)
    assert (stored["endpointscount"], stored["endpointsurl"]) == (1, "http://registry.test/endpoints")
    assert stored["endpoints"]["e"]["messagegroups"] == FILE["endpoints"]["e"]["messagegroups"]
    messages = stored["messagegroups"]["g"]["messages"]
    for id_, message in FILE["messagegroups"]["g"]["messages"].items():
        for name in ("dataschemauri", "basemessageuri"):
            assert messages[id_].get(name) == message.get(name)
    assert stored["schemagroups"]["g"]["schemas"]["s"]["schema"] == OBJECT
    assert fresh.put("/", {**FILE, "registryid": "other"}).error == (400, "mismatched_id", "/")
    assert fresh.put("/?ignore=id", {**FILE, "registryid": "other"}).status == 200


@pytest.mark.parametrize("collection", ["endpoints", "messagegroups", "schemagroups"])
def test_c_ce_02_any_collection_may_be_missing(fresh: Client, collection: str) -> None:
    part = {name: value for name, value in FILE.items() if not name.startswith(collection)}
    stored = put(fresh, "/?inline", part)
    assert {name: len(stored[name]) for name in ("endpoints", "messagegroups", "schemagroups")} == {
        name: int(name != collection) for name in ("endpoints", "messagegroups", "schemagroups")
    }


def test_c_ce_04_a_round_trip_keeps_references(fresh: Client) -> None:
    put(fresh, "/", FILE)
    exported = fresh.get("/export").json
    for path in ("/endpoints", "/messagegroups", "/schemagroups"):
        assert fresh.delete(path).status == 204
    assert fresh.put("/?ignore=epoch,capabilities,modelsource", exported).status == 200
    again = fresh.get("/export").json
    for document in (exported, again):
        for name in ("epoch", "modifiedat"):
            del document[name]
    assert again == exported


@pytest.mark.parametrize("old", ["format", "metadata", "config"])
def test_c_ce_05_samples_of_older_texts_do_not_fit(fresh: Client, old: str) -> None:
    """`format` is an attribute of every Version; what it was in older texts is an unknown value there."""
    reply = fresh.put(MESSAGE, {old: {"a": 1}})
    assert reply.error[:2] == (400, "invalid_attribute" if old == "format" else "unknown_attribute")
    assert fresh.put(MESSAGE, {"createdat": "2024-04-31T00:00:00Z"}).error[1] == "invalid_attribute"
