"""From an endpoint and settings of the Kafka client to options of Spark's Kafka source; no broker is needed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from wirebook.capture.endpoints import Credentials, ReceivedEndpoint
from wirebook.catalog import Catalog
from wirebook.catalog.live import LiveCatalog
from wirebook.cli.app import run
from wirebook.problems import Problem, WirebookError
from wirebook.spark.kafka import KafkaSource, client_settings, kafka_source, parse_properties, starting_offsets

SERVERS = {"endpoints": [{"bootstrap.servers": ["a:9092", "b:9092"]}, {"bootstrap.servers": ["c:9092"]}]}
NOBODY = Credentials()
USER = Credentials(username="ann", password='se"cr\\et')


def document(options: dict[str, Any], *topics: str, protocol: str = "KAFKA") -> dict[str, Any]:
    endpoint = {"usage": ["consumer"], "protocol": protocol, "protocoloptions": options, "messagegroups": []}
    endpoint["messagegroups"] = ["/messagegroups/g"]
    messages = {
        f"m{number}": {"protocol": protocol, "protocoloptions": {"topic": topic}} for number, topic in enumerate(topics)
    }
    groups = {"g": {"messages": messages}}
    return {"specversion": "1.0-rc4", "endpoints": {"orders": endpoint}, "messagegroups": groups}


def source_of(
    options: dict[str, Any],
    *topics: str,
    given: dict[str, str] | None = None,
    user: Credentials = NOBODY,
    protocol: str = "KAFKA",
    values: dict[str, str] | None = None,
) -> KafkaSource:
    catalog = Catalog.load(document(options, *topics, protocol=protocol))
    return kafka_source(catalog, ReceivedEndpoint(catalog, "/endpoints/orders", values or {}, user), given or {})


def failure(options: dict[str, Any], *topics: str, **more: Any) -> Problem:
    with pytest.raises(WirebookError) as caught:
        source_of(options, *topics, **more)
    (problem,) = caught.value.problems
    return problem


def options_of(source: KafkaSource) -> dict[str, str]:
    return source.options(starting="earliest", max_per_batch=10, min_per_batch=None, fail_on_data_loss=True)


def test_definition_becomes_options_of_spark() -> None:
    source = source_of(SERVERS | {"topic": "orders", "consumergroup": "lake", "autooffsetreset": "latest"})
    assert source.offset_reset == "latest"
    assert options_of(source) == {
        "subscribe": "orders",
        "groupIdPrefix": "lake",
        "includeHeaders": "true",
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "maxRecordsPerPartition": "200000",
        "maxOffsetsPerTrigger": "10",
        "kafka.bootstrap.servers": "a:9092,b:9092,c:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.isolation.level": "read_committed",
        "kafka.max.partition.fetch.bytes": "4194304",
        "kafka.max.poll.records": "5000",
    }


def test_partition_is_assigned() -> None:
    options = options_of(source_of(SERVERS | {"topic": "orders", "partition": 3}))
    assert json.loads(options["assign"]) == {"orders": [3]}
    assert "subscribe" not in options


def test_topics_of_the_messages_are_read_if_the_endpoint_has_none() -> None:
    assert source_of(SERVERS, "paid", "made", "paid", "x.{shop}").topics == ("made", "paid")


def test_settings_override_the_definition() -> None:
    given = {
        "bootstrap.servers": "x:1,SSL://y:2",
        "isolation.level": "read_uncommitted",
        "group.id": "g",
        "max.partition.fetch.bytes": "1048576",
    }
    options = options_of(source_of(SERVERS | {"topic": "orders", "consumergroup": "lake"}, given=given))
    assert options["kafka.bootstrap.servers"] == "x:1,y:2"
    assert options["kafka.security.protocol"] == "SSL"
    assert options["kafka.isolation.level"] == "read_uncommitted"
    assert (options["kafka.max.partition.fetch.bytes"], options["kafka.max.poll.records"]) == ("1048576", "5000")
    assert "groupIdPrefix" not in options


def test_placeholders_get_values() -> None:
    options = {"topic": "x.{shop}", "endpoints": [{"bootstrap.servers": ["{stage}.example:9092"]}]}
    source = source_of(options, values={"shop": "lund", "stage": "test"})
    assert (source.topics, source.servers) == (("x.lund",), "test.example:9092")


@pytest.mark.parametrize(
    ("options", "topics", "code", "pointer"),
    [
        ({"topic": "orders"}, (), "incomplete-endpoint", "protocoloptions/endpoints"),
        (
            {"topic": "o", "endpoints": [{"bootstrap.servers": []}]},
            (),
            "bad-address",
            "protocoloptions/endpoints/0/bootstrap.servers",
        ),
        (
            {"topic": "o", "endpoints": [{"bootstrap.servers": ["{stage}:9092"]}]},
            (),
            "missing-context",
            "protocoloptions/endpoints/0/bootstrap.servers",
        ),
        (
            {"topic": "o", "endpoints": [{"bootstrap.servers": ["SSL://a:1", "PLAINTEXT://b:1"]}]},
            (),
            "bad-address",
            "protocoloptions/endpoints",
        ),
        (SERVERS, (), "incomplete-endpoint", "protocoloptions/topic"),
        (SERVERS, ("x.{shop}",), "incomplete-endpoint", "protocoloptions/topic"),
        (SERVERS | {"topic": "x.{shop}"}, (), "missing-context", "protocoloptions/topic"),
        (SERVERS | {"topic": "o", "partition": "1"}, (), "bad-option", "protocoloptions/partition"),
    ],
)
def test_missing_part_is_named_by_its_pointer(
    options: dict[str, Any], topics: tuple[str, ...], code: str, pointer: str
) -> None:
    problem = failure(options, *topics)
    assert (problem.code, problem.pointer) == (code, f"/endpoints/orders/{pointer}")


def test_other_protocol_is_refused() -> None:
    problem = failure({}, protocol="HTTP")
    assert (problem.code, problem.pointer) == ("not-receivable", "/endpoints/orders/protocol")
    assert "only endpoints of Kafka, and of NATS with JetStream, can be streamed" in problem.message
    assert "`wirebook capture`" in str(problem.hint)


@pytest.mark.parametrize(
    ("authorization", "protocol", "mechanism"),
    [
        ({"type": "SASL", "mechanism": "SCRAM-SHA-512"}, "SASL_SSL", "SCRAM-SHA-512"),
        ({"type": "Plain"}, "SASL_SSL", "PLAIN"),
        ({"type": "X509Cert"}, "SSL", None),
    ],
)
def test_authorization_becomes_security_settings(
    authorization: dict[str, str], protocol: str, mechanism: str | None
) -> None:
    options = SERVERS | {"topic": "orders", "authorization": [authorization]}
    settings = source_of(options, user=USER if mechanism else NOBODY).settings
    assert (settings["security.protocol"], settings.get("sasl.mechanism")) == (protocol, mechanism)
    if mechanism:
        assert settings["sasl.jaas.config"].endswith('LoginModule required username="ann" password="se\\"cr\\\\et";')


def test_missing_credentials_are_named() -> None:
    options = SERVERS | {"topic": "orders", "authorization": [{"type": "SASL", "mechanism": "PLAIN"}]}
    problem = failure(options, user=Credentials(username="ann"))
    assert problem.code == "missing-credentials"
    assert problem.pointer == "/endpoints/orders/protocoloptions/authorization"
    assert "WIREBOOK_ORDERS_PASSWORD" in str(problem.hint)
    options["authorization"] = [{"type": "OAuth2"}]
    assert "sasl.jaas.config" in str(failure(options, user=USER).hint)


def test_certificates_are_read_from_their_files(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"the {name}")
    files = {f"{name}file": str(tmp_path / name) for name in ("ca", "cert", "key")}
    source = source_of(SERVERS | {"topic": "orders"}, user=Credentials(**files))
    assert {name: value for name, value in source.settings.items() if name.startswith(("ssl", "security"))} == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the cert",
        "ssl.keystore.key": "the key",
    }
    assert source.secrets == ["the key"]
    missing = failure(SERVERS | {"topic": "orders"}, user=Credentials(cafile=str(tmp_path / "none")))
    assert (missing.code, missing.xid) == ("bad-setting", "/endpoints/orders")


def test_secrets_are_in_no_text_of_the_source() -> None:
    source = source_of(SERVERS | {"topic": "orders"}, user=USER, given={"ssl.key.password": "k-secret"})
    assert len(source.secrets) == 2
    assert "secret" not in repr(source)
    assert "cr" not in repr(source)


def test_settings_of_spark_cannot_be_set() -> None:
    problem = failure(SERVERS | {"topic": "orders"}, given={"auto.offset.reset": "latest"})
    assert problem.code == "bad-setting"
    assert "--from" in problem.message


def test_errors_of_a_settings_file_do_not_show_its_content(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("=secret\n")
    with pytest.raises(WirebookError) as caught:
        client_settings(file)
    assert "secret" not in str(caught.value)
    with pytest.raises(WirebookError) as caught:
        client_settings(tmp_path / "none")
    assert caught.value.problems[0].code == "unreadable-file"


def test_properties_are_read_as_java_reads_them() -> None:
    text = "! no\n\na=b=c\n  d : e\\\n   f\n g h i\n\\u0041\\=b=\\t\\\\x\nempty=\nends\\\\\nblank=a \\ \nlast=1"
    assert dict(parse_properties(text)) == {
        "a": "b=c",
        "d": "ef",
        "g": "h i",
        "A=b": "\t\\x",
        "empty": "",
        "ends\\": "",
        "blank": "a  ",
        "last": "1",
    }


@pytest.mark.parametrize(
    "text", ["newest", "[1]", '{"orders": 1}', '{"orders": {"a": 1}}', '{"orders": {"0": -3}}', '{"other": {"0": 1}}']
)
def test_invalid_starting_offsets_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"earliest|orders"):
        starting_offsets(text, ["orders"])


def test_starting_offsets_are_kept() -> None:
    assert starting_offsets("latest", ["orders"]) == "latest"
    assert json.loads(starting_offsets('{"orders": {"0": 7, "1": -2}}', ["orders"])) == {"orders": {"0": 7, "1": -2}}


# -- the command line, before Spark starts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jars", "{folder}"], "[missing-jars]; on a machine with network, run: python -m wirebook.spark.jars"),
        (["--from", "newest"], "--from"),
        (["--once", "--available-now"], "mutually exclusive"),
        (["--name", "a/b"], "--name"),
        (["--interval", "soon"], "[bad-setting]"),
    ],
)
def test_mistakes_on_the_command_line_are_reported_before_spark_starts(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(document(SERVERS | {"topic": "orders"})))
    line = ["stream", "--endpoint", "/endpoints/orders", "--catalog", str(catalogue), "--to", str(tmp_path / "tables")]
    assert run([*line, *(argument.format(folder=tmp_path) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "starting Spark" not in error


# -- the catalogue of a stream --------------------------------------------------------------------------------------


def test_catalogue_follows_its_file_until_it_breaks(tmp_path: Path) -> None:
    file, notes = tmp_path / "catalogue.json", list[str]()
    ticks = iter(range(1, 100))

    def write(text: str) -> None:
        file.write_text(text)
        os.utime(file, (next(ticks), 0))

    write(json.dumps(document(SERVERS | {"topic": "orders"}, "orders")))
    first = Catalog.load(file)
    live = LiveCatalog(first, [str(file)], "/endpoints/orders", notes.append)
    assert live.refresh() is first
    write(json.dumps(document(SERVERS | {"topic": "orders"}, "orders", "more")))
    second = live.refresh()
    assert len(second.definitions) == 2
    write('{"specversion": "1.0-rc4", "endpoints"')
    assert live.refresh() is second
    assert live.refresh() is second
    write(json.dumps({"specversion": "1.0-rc4", "endpoints": {}, "messagegroups": {}}))
    assert live.refresh() is second
    dangling = document(SERVERS | {"topic": "orders"}, "orders")
    dangling["messagegroups"]["g"]["messages"]["m0"]["protocoloptions"] = {"topic": {"value": 1}, "qos": []}
    dangling["messagegroups"]["g"]["messages"]["m0"]["basemessage"] = "/messagegroups/g/messages/m0"
    write(json.dumps(dangling))
    assert live.refresh() is second
    file.unlink()
    assert live.refresh() is second
    write(json.dumps(document(SERVERS | {"topic": "orders"}, "orders")))
    assert live.refresh().fingerprint == first.fingerprint
    changed = [note.split(":")[0] for note in notes]
    assert changed == ["the catalogue changed", *["the changed catalogue cannot be used"] * 4, "the catalogue changed"]
