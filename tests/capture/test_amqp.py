"""AMQP 1.0 with Artemis: messages are captured unchanged; kills of the gateway and of the broker lose none that the
broker accepted."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import httpx
import pytest
from brokers import USERS, ArtemisBroker, free_port

from tests.capture.gateway import (
    KILLS,
    GatewayProcess,
    captured,
    command,
    gateway,
    kill_often,
    lines_in,
    wait_for_all,
    wait_for_note,
    wait_until,
    write_catalog,
)

proton = pytest.importorskip("proton", reason="needs python-qpid-proton, which is built with a C compiler")

from proton import Message, int32, symbol, timestamp, ubyte, uint, ulong  # noqa: E402
from proton.reactor import LinkOption  # noqa: E402

from tests.brokers.artemis import Encoded, Publisher, receive, running_artemis, send  # noqa: E402
from wirebook.capture.amqp import AmqpReceiver  # noqa: E402
from wirebook.capture.committer import Committer  # noqa: E402
from wirebook.capture.endpoints import Credentials, ReceivedEndpoint  # noqa: E402
from wirebook.catalog import Catalog  # noqa: E402
from wirebook.landing.job import land  # noqa: E402
from wirebook.landing.runs.local_runner import LocalRunner  # noqa: E402
from wirebook.problems import WirebookError  # noqa: E402

pytestmark = pytest.mark.xdist_group("artemis")
ARGUMENTS = ["--endpoint", "/endpoints/ovens"]
ID = UUID("8a2f1e4c-0000-4000-8000-000000000001")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtemisBroker]:
    with running_artemis(tmp_path_factory.mktemp("artemis")) as running:
        yield running


@pytest.fixture
def node(tmp_path: Path) -> str:
    """A queue of the test's own."""
    return tmp_path.name


def catalog_of(broker: ArtemisBroker, folder: Path, **options: Any) -> Path:
    options = {"node": folder.name, "endpoints": [{"uri": f"amqp://{broker.plain}"}]} | options
    endpoint = {"usage": ["consumer"], "protocol": "AMQP/1.0", "protocoloptions": options}
    return write_catalog(folder, {"ovens": endpoint})


def capture_all(broker: ArtemisBroker, folder: Path, *messages: Any) -> list[dict[str, Any]]:
    """Send messages; the records that the gateway makes of them, without the members that all have."""
    send(broker, folder.name, *messages)
    with gateway(catalog_of(broker, folder), folder / "to", *ARGUMENTS) as process:
        wait_until(lambda: len(lines_in(folder / "to")) == len(messages))
        assert process.stop()[0] == 0
    records = captured(folder / "to")
    for record in records:
        assert record.pop("received").endswith("Z")
        assert record.pop("protocol") == "AMQP/1.0"
        assert record.pop("endpoint") == "/endpoints/ovens"
    return records


def test_every_section_and_type_is_captured_unchanged(broker: ArtemisBroker, tmp_path: Path) -> None:
    noon = timestamp(1_767_607_200_500)
    applied = {
        "text": "ü",
        "yes": True,
        "null": None,
        "long": -(2**63),
        "double": 1.5,
        "not-a-number": float("nan"),
        "infinite": proton.float32(float("-inf")),
        "binary": b"\xff",
        "symbol": symbol("s"),
        "char": proton.char("ß"),
        "time": timestamp(-1),
        "uuid": ID,
        "ubyte": ubyte(255),
        "ushort": proton.ushort(65535),
        "uint": uint(2**32 - 1),
        "ulong": ulong(2**64 - 1),
        "byte": proton.byte(-128),
        "short": proton.short(-1),
        "int": int32(-1),
        "float": proton.float32(0.5),
        "decimal32": proton.decimal32(0x32800001 - (1 << 23)),
        "decimal64": proton.decimal64(0x31C0000000000000 | 1 << 63 | 15),
        "decimal128": proton.decimal128(bytes.fromhex("3040000000000000") + (7).to_bytes(8, "big")),
    }
    annotations = {
        symbol("x-opt-list"): [1, symbol("a"), [ulong(2)]],
        symbol("x-opt-map"): {"k": int32(1)},
        symbol("x-opt-keys"): {symbol("k"): 1, ulong(2): "two"},
        symbol("x-opt-array"): proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, symbol("a"), symbol("b")),
    }
    properties = [
        *(ulong(5), b"\xff", "/a", "subject", "/r", ID, symbol("application/json")),
        *(symbol("gzip"), timestamp(4_102_444_800_000), noon, "group", uint(9), "reply group"),
    ]
    message = Encoded(
        (0x70, [True, ubyte(7), uint(3_600_000), False, uint(0)]),
        (0x71, {symbol("x-hop"): "1"}),
        (0x72, annotations),
        (0x73, properties),
        (0x74, applied),
        (0x75, b"\x00\xff"),
        (0x78, {symbol("x-sum"): b"\x01"}),
    )
    (record,) = capture_all(broker, tmp_path, message)
    header = record.pop("header")
    assert (header["durable"], header["priority"]) == (True, 7)
    assert record == {
        # the broker removes delivery annotations, which are for one hop
        "message-annotations": {
            "x-opt-list": {"list": [1, {"symbol": "a"}, {"list": [{"ulong": 2}]}]},
            "x-opt-map": {"map": {"k": {"int": 1}}},
            "x-opt-keys": {"map": [[{"symbol": "k"}, 1], [{"ulong": 2}, "two"]]},
            "x-opt-array": {"array": [{"symbol": "a"}, {"symbol": "b"}]},
        },
        "properties": {
            "message-id": {"ulong": 5},
            "user-id": {"binary": "/w=="},
            "to": "/a",
            "subject": "subject",
            "reply-to": "/r",
            "correlation-id": {"uuid": str(ID)},
            "content-type": "application/json",
            "content-encoding": "gzip",
            "absolute-expiry-time": {"timestamp": "2100-01-01T00:00:00.000Z"},
            "creation-time": {"timestamp": "2026-01-05T10:00:00.500Z"},
            "group-id": "group",
            "group-sequence": 9,
            "reply-to-group-id": "reply group",
        },
        "application-properties": {
            "text": "ü",
            "yes": True,
            "null": None,
            "long": -(2**63),
            "double": 1.5,
            "not-a-number": {"double": "NaN"},
            "infinite": {"float": "-Infinity"},
            "binary": {"binary": "/w=="},
            "symbol": {"symbol": "s"},
            "char": {"char": "ß"},
            "time": {"timestamp": "1969-12-31T23:59:59.999Z"},
            "uuid": {"uuid": str(ID)},
            "ubyte": {"ubyte": 255},
            "ushort": {"ushort": 65535},
            "uint": {"uint": 2**32 - 1},
            "ulong": {"ulong": 2**64 - 1},
            "byte": {"byte": -128},
            "short": {"short": -1},
            "int": {"int": -1},
            "float": {"float": 0.5},
            "decimal32": {"decimal32": "0.1"},
            "decimal64": {"decimal64": "-15"},
            "decimal128": {"decimal128": "7"},
        },
        "body": {"base64": "AP8="},
        "footer": {"x-sum": {"binary": "AQ=="}},
    }


def test_every_kind_of_body_is_captured(broker: ArtemisBroker, tmp_path: Path) -> None:
    records = capture_all(
        broker,
        tmp_path,
        Encoded((0x75, b"one, "), (0x75, b"two")),
        Encoded((0x75, b"")),
        Encoded((0x77, "text")),
        Encoded((0x77, b"\xff")),
        Encoded((0x77, None)),
        Encoded((0x77, {"cents": int32(250), "shop": "7"})),
        Encoded((0x77, [1, [2]])),
        Encoded((0x77, ulong(1))),
        Encoded((0x76, [1, "a"]), (0x76, [b"\xff"])),
    )
    assert [(record.get("body-section", "data"), record.get("body")) for record in records] == [
        ("data", "one, two"),
        ("data", ""),
        ("amqp-value", "text"),
        ("amqp-value", {"base64": "/w=="}),
        ("amqp-value", None),
        ("amqp-value-json", '{"map":{"cents":{"int":250},"shop":"7"}}'),
        ("amqp-value-json", '{"list":[1,{"list":[2]}]}'),
        ("amqp-value-json", '{"ulong":1}'),
        ("amqp-sequence-json", '[[1,"a"],[{"binary":"/w=="}]]'),
    ]


def with_events(path: Path, **payload: Any) -> Path:
    """Add definitions of events and of plain messages to a catalogue."""
    document = json.loads(path.read_text())
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "oven.baked"}}}
    plain = {"application-properties": {"kind": {"value": "heated"}, "count": {"type": "integer", "value": 7}}}
    document["messagegroups"] = {
        "ovens": {
            "messagegroupid": "ovens",
            "messages": {
                "baked": {"messageid": "baked", **event, **payload},
                "heated": {"messageid": "heated", "protocol": "AMQP/1.0", "protocoloptions": plain, **payload},
            },
        }
    }
    document["endpoints"]["ovens"]["messagegroups"] = ["/messagegroups/ovens"]
    path.write_text(json.dumps(document))
    return path


def test_events_and_plain_messages_are_matched_and_land(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    payload = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": {"type": "object", "required": ["cents"]}}
    path = with_events(catalog_of(broker, tmp_path), **payload)
    attributes = {"specversion": "1.0", "id": "1", "source": "/o", "type": "oven.baked"}
    binary = {f"cloudEvents:{name}": value for name, value in attributes.items()} | {"cloudEvents:time": timestamp(0)}
    structured = json.dumps(attributes | {"id": "2", "data": {"cents": 2}}).encode()
    send(
        broker,
        node,
        Message(b'{"cents": 1}', inferred=True, content_type="application/json", properties=binary),
        Message(structured, inferred=True, content_type="application/cloudevents+json"),
        Message('{"cents": 3}', properties={"kind": "heated", "count": int32(7)}),
        Message(b"{}", inferred=True, properties={"kind": "heated", "count": 7}),
    )
    with gateway(path, tmp_path / "to", *ARGUMENTS) as process:
        wait_until(lambda: len(lines_in(tmp_path / "to")) == 4)
        process.stop()
    report = land(tmp_path / "to", Catalog.load(path), tmp_path / "tables", runner=LocalRunner())
    assert (report.landed, report.dead_lettered) == (3, 1)
    rows = {report.definitions[table]: count for table, count in report.rows.items() if table in report.definitions}
    assert rows == {"/messagegroups/ovens/messages/baked": 2, "/messagegroups/ovens/messages/heated": 1}


def limited(arguments: list[str]) -> subprocess.Popen[str]:
    """Run a gateway that cannot write more than 500 bytes to a file."""
    arguments[2] = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n" + arguments[2]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)


def test_message_that_is_not_durable_is_not_settled(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    """A gateway whose writes fail is killed; the next one receives what the first could not store."""
    catalog, folder = catalog_of(broker, tmp_path), tmp_path / "to"
    bodies = [f"{number}".rjust(100) for number in range(20)]
    process = limited(command(catalog, folder, *ARGUMENTS))
    try:
        running = GatewayProcess(process)
        wait_for_note(running, f"receiving '{node}'")
        send(broker, node, *(Message(body.encode(), inferred=True) for body in bodies))
        wait_for_note(running, "cannot write a segment")
        time.sleep(0.5)  # longer than settling takes
    finally:
        process.kill()
        process.communicate()
    with gateway(catalog, folder, *ARGUMENTS) as again:
        wait_until(lambda: {record["body"] for record in lines_in(folder)} == set(bodies))
        again.stop()
    assert {record["body"] for record in captured(folder)} == set(bodies)


def test_full_memory_stops_reading(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    """Nothing can be written: the gateway reads as much as fits `--memory`, and the broker keeps the rest. The last
    message is larger than the memory and the window of the session."""
    metrics = f"127.0.0.1:{free_port()}"
    sizes = [*[20_000] * 200, 10 << 20]
    send(broker, node, *(Message(b"x" * size, inferred=True) for size in sizes))
    catalog, arguments = catalog_of(broker, tmp_path), [*ARGUMENTS, "--memory", "1"]
    process = limited(command(catalog, tmp_path / "to", *arguments, "--metrics-address", metrics))
    try:
        wait_for_note(GatewayProcess(process), f"receiving '{node}'")

        def pending() -> int:
            status: dict[str, Any] = httpx.get(f"http://{metrics}/readyz", trust_env=False).json()
            return int(status["pending_bytes"])

        wait_until(lambda: pending() > 1 << 20)
        time.sleep(0.5)
        assert pending() < (1 << 20) + 100_000
    finally:
        process.kill()
        process.communicate()
    with gateway(catalog, tmp_path / "to", *arguments) as again:
        wait_until(lambda: len(lines_in(tmp_path / "to")) >= len(sizes))
        again.stop()
    assert [len(record["body"]) for record in captured(tmp_path / "to")] == sizes


def test_message_that_no_record_can_hold_is_rejected(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    """The broker moves it to its dead letters, and the next messages are captured."""
    metrics = f"127.0.0.1:{free_port()}"
    arguments = command(catalog_of(broker, tmp_path), tmp_path / "to", *ARGUMENTS, "--metrics-address", metrics)
    arguments[2] = "import wirebook.capture.amqp as amqp; amqp.MAX_RECORD_BYTES = 100_000\n" + arguments[2]
    send(
        broker,
        node,
        Message(b"late", inferred=True, properties={"n": 1, "when": timestamp(2**60)}),
        Message(b"x" * 100_001, inferred=True, properties={"n": 2}),
        Message(b"\xff" * 90_000, inferred=True, properties={"n": 3}),
        Message(b"good", inferred=True),
    )
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    try:
        running = GatewayProcess(process)
        assert "a message was rejected: " in wait_for_note(running, "years 1 to 9999")
        wait_until(lambda: [record["body"] for record in lines_in(tmp_path / "to")] == ["good"])
        text = httpx.get(f"http://{metrics}/metrics", trust_env=False).text
        assert 'wirebook_capture_rejected_total{endpoint="/endpoints/ovens",reason="malformed"} 1.0' in text
        assert 'wirebook_capture_rejected_total{endpoint="/endpoints/ovens",reason="too-large"} 2.0' in text
        assert 'wirebook_capture_acknowledged_total{endpoint="/endpoints/ovens"} 1.0' in text
        running.stop()
    finally:
        process.kill()
        process.communicate()
    assert [receive(broker, "DLQ").properties["n"] for _ in range(3)] == [1, 2, 3]


def test_orderly_stop_keeps_each_message_once(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    """Gateways are stopped while messages arrive: what was read is accepted, and the rest goes back to the broker."""
    catalog, folder = catalog_of(broker, tmp_path), tmp_path / "to"
    source = Publisher(broker, node)
    try:
        for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
            with gateway(catalog, folder, *ARGUMENTS) as process:
                before = len(lines_in(folder))
                wait_until(lambda before=before: len(lines_in(folder)) > before)  # type: ignore[misc]
                assert process.stop(number)[0] == code
    finally:
        source.stop()
    with gateway(catalog, folder, *ARGUMENTS) as process:
        wait_until(lambda: source.accepted <= {record["body"] for record in lines_in(folder)})
        process.stop()
    bodies = [record["body"] for record in captured(folder)]
    assert len(bodies) == len(set(bodies))


def test_wrong_password_is_reported_without_it(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    catalog, folder = catalog_of(broker, tmp_path), tmp_path / "to"
    environment = {"WIREBOOK_OVENS_USERNAME": "app", "WIREBOOK_OVENS_PASSWORD": "wrong-secret"}
    with gateway(catalog, folder, *ARGUMENTS, env=environment) as process:
        line = wait_for_note(process, "not receiving: ")
        assert "the broker refused the login by PLAIN: amqp:unauthorized-access" in line
        _, rest = process.stop()
        assert "wrong-secret" not in line + rest + str(process.notes)
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"/endpoints/ovens": {"username": "app", "password": USERS["app"]}}))
    with gateway(catalog, folder, *ARGUMENTS, "--secrets", str(secrets)) as process:
        wait_for_note(process, f"receiving '{node}'")
        process.stop()


def test_unknown_node_is_reported(broker: ArtemisBroker, tmp_path: Path) -> None:
    with gateway(catalog_of(broker, tmp_path, node="unknown"), tmp_path / "to", *ARGUMENTS) as process:
        line = wait_for_note(process, "not receiving: ")
        assert "the broker refused the link to 'unknown': amqp:not-found" in line
        assert process.stop()[0] == 0


def test_broker_is_verified(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    catalog, folder = catalog_of(broker, tmp_path, endpoints=[{"uri": f"amqps://{broker.tls}"}]), tmp_path / "to"
    environment = {"WIREBOOK_OVENS_USERNAME": "app", "WIREBOOK_OVENS_PASSWORD": USERS["app"]}
    with gateway(catalog, folder, *ARGUMENTS, env=environment) as process:
        assert "certificate verify failed" in wait_for_note(process, "not receiving: ")
        process.stop()
    environment["WIREBOOK_OVENS_CAFILE"] = str(broker.certificate)
    with gateway(catalog, folder, *ARGUMENTS, env=environment) as process:
        wait_for_note(process, f"receiving '{node}' from amqps://")
        bodies = [f"{number}." + "x" * random.choice((1, 40_000)) for number in range(100)]
        send(broker, node, *(Message(body.encode(), inferred=True) for body in bodies))
        wait_until(lambda: len(lines_in(folder)) == 100)
        process.stop()
    assert [record["body"] for record in captured(folder)] == bodies


def test_certificate_of_the_client_is_a_login(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    catalog = catalog_of(broker, tmp_path, endpoints=[{"uri": f"amqps://{broker.mutual}"}])
    files = {"CAFILE": "ca.pem", "CERTFILE": "cert.pem", "KEYFILE": "key.pem"}
    environment = {f"WIREBOOK_OVENS_{name}": str(broker.folder / file) for name, file in files.items()}
    with gateway(catalog, tmp_path / "to", *ARGUMENTS, env=environment) as process:
        wait_for_note(process, f"receiving '{node}' from amqps://")
        process.stop()


class ToTopic(LinkOption):
    """Makes the node of a sender a topic."""

    def apply(self, link: Any) -> None:
        link.target.capabilities.put_py_array(proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, symbol("topic")))


def test_durable_subscription_keeps_messages_between_runs(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    options = {"node-capabilities": ["topic"], "terminus-durability": "unsettled-state", "expiry-policy": "never"}
    catalog, folder = catalog_of(broker, tmp_path, **options), tmp_path / "to"
    with gateway(catalog, folder, *ARGUMENTS) as process:
        wait_for_note(process, f"receiving '{node}'")
        process.stop()
    send(broker, node, Message(b"between", inferred=True), options=ToTopic())
    with gateway(catalog, folder, *ARGUMENTS) as process:
        wait_until(lambda: [record["body"] for record in lines_in(folder)] == ["between"])
        process.stop()


def test_copies_stay_in_the_node(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    catalog = catalog_of(broker, tmp_path, **{"distribution-mode": "copy"})
    send(broker, node, Message(b"kept", inferred=True))
    for folder in (tmp_path / "a", tmp_path / "b"):
        with gateway(catalog, folder, *ARGUMENTS) as process:
            wait_for_note(process, "'distribution-mode' is 'copy'")
            wait_until(lambda folder=folder: len(lines_in(folder)) == 1)  # type: ignore[misc]
            process.stop()
    assert bytes(receive(broker, node).body) == b"kept"


def test_messages_that_the_broker_settles_are_captured_with_a_note(
    broker: ArtemisBroker, tmp_path: Path, node: str
) -> None:
    catalog, folder = catalog_of(broker, tmp_path, **{"sender-settle-mode": "settled"}), tmp_path / "to"
    send(broker, node, Message(b"sent once", inferred=True))
    with gateway(catalog, folder, *ARGUMENTS) as process:
        wait_for_note(process, "'sender-settle-mode' is 'settled': messages that are not durable yet can be lost")
        wait_until(lambda: [record["body"] for record in lines_in(folder)] == ["sent once"])
        assert process.stop()[0] == 0


def test_filter_selects_messages(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    filters = {"apache.org:selector-filter:string": "oven = 7"}
    catalog, folder = catalog_of(broker, tmp_path, **{"source-filters": filters}), tmp_path / "to"
    send(broker, node, *(Message(b"%d" % oven, inferred=True, properties={"oven": int32(oven)}) for oven in (6, 7)))
    with gateway(catalog, folder, *ARGUMENTS) as process:
        wait_until(lambda: [record["body"] for record in lines_in(folder)] == ["7"])
        process.stop()
    assert bytes(receive(broker, node).body) == b"6"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"node": None}, "/protocoloptions/node: "),
        ({"dynamic": True}, "'dynamic: true' is not supported by capture [not-receivable]"),
        (
            {"receiver-settle-mode": "second"},
            "'receiver-settle-mode: second' is not supported by capture [not-receivable]",
        ),
        ({"distribution-mode": "both"}, "[bad-option]"),
        ({"authorization": [{"type": "SASL", "mechanism": "SCRAM-SHA-256"}]}, "[bad-authorization]"),
        ({"endpoints": [{"uri": "mqtt://localhost"}]}, "is not a URI that begins with amqp:// or amqps://"),
        ({"link-properties": {"n": 1}}, "[bad-option]"),
    ],
)
def test_endpoint_that_cannot_be_received_names_the_reason(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    options = {"node": "q", "endpoints": [{"uri": "amqp://localhost"}]} | options
    endpoint = {"usage": ["consumer"], "protocol": "AMQP/1.0", "protocoloptions": options}
    catalog = Catalog.load(write_catalog(tmp_path, {"ovens": endpoint}))

    async def make() -> None:
        received = ReceivedEndpoint(catalog, "/endpoints/ovens", {}, Credentials())
        AmqpReceiver(received, cast(Committer, None), "x", print)

    with pytest.raises(WirebookError) as error:
        asyncio.run(make())
    (problem,) = error.value.problems
    assert text in f"{problem.pointer}: {problem.message} [{problem.code}]"


@pytest.mark.faults
def test_kills_and_restarts_lose_no_accepted_message(broker: ArtemisBroker, tmp_path: Path, node: str) -> None:
    catalog, folder = catalog_of(broker, tmp_path), tmp_path / "to"
    arguments = [*ARGUMENTS, "--segment-age", "1s"]
    source = Publisher(broker, node)
    try:
        kill_often(lambda: gateway(catalog, folder, *arguments), broker.kill, broker.start)
    finally:
        source.stop()
    with gateway(catalog, folder, *arguments) as last:
        wait_for_all(lambda: source.accepted, folder, "body")
        assert last.stop()[0] == 0
    bodies = Counter(record["body"] for record in captured(folder))
    assert len(source.accepted) > 100
    assert source.accepted <= set(bodies)
    twice = bodies.total() - len(bodies)
    events = Catalog.load(with_events(catalog))
    report = land(folder, events, tmp_path / "tables", runner=LocalRunner(), deduplicate=timedelta(hours=1))
    assert (report.landed, report.repeated, report.dead_lettered) == (len(bodies), twice, 0)
    print(f"{KILLS} kills: {source.sent} sent, {len(source.accepted)} accepted, {twice} captured twice")
