"""`wirebook stream` with JetStream: what lands, restarts, kills, a server that goes away, streams that are refused."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import orjson
import pyarrow.parquet as pq
import pytest
from brokers import NatsServer
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StreamConfig
from nats.js.errors import BadRequestError, ServerError, ServiceUnavailableError

from tests.brokers.nats_tls import tls_server
from tests.spark.stream_commands import Watched, kill_while_producing, run, started
from wirebook.capture.endpoints import Credentials
from wirebook.capture.jetstream import ServerAway, _connected, find_stream
from wirebook.capture.nats_client import NatsClient, NatsServers
from wirebook.landing.stores.hdfs import HdfsPath
from wirebook.landing.stores.locations import location_of
from wirebook.problems import WirebookError
from wirebook.spark.jetstream_endpoint import JetStream, planned_sequence, starting_sequence
from wirebook.spark.stream_sources import ReadLimits

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("servers")]

SEEN: dict[str, Any] = {
    "protocol": "NATS",
    "protocoloptions": {"subject": "plants.{plant}.seen"},
    "dataschemaformat": "JsonSchema/draft-07",
    "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


class Plants:
    """A stream with the subjects ``plants.>`` and ``other.>``, an endpoint for the former, and a target folder."""

    def __init__(self, server: NatsServer, folder: Path, uri: str | None = None, **login: Any) -> None:
        self.server, self.folder, self._login = server, folder, login
        self.target, self.catalogue = folder / "tables", folder / "catalogue.json"
        self.acknowledged: set[int] = set()
        options = {"subjectfilter": "plants.>", "endpoints": [{"uri": uri or f"nats://127.0.0.1:{server.port}"}]}
        endpoint = {"usage": ["subscriber"], "protocol": "NATS", "protocoloptions": options}
        document = {
            "specversion": "1.0-rc4",
            "endpoints": {"e": endpoint | {"messagegroups": ["/messagegroups/g"]}},
            "messagegroups": {"g": {"messages": {"seen": SEEN}}},
        }
        self.catalogue.write_text(json.dumps(document))
        self.make_stream()

    def make_stream(self) -> None:
        config = StreamConfig(name="PLANTS", subjects=["plants.>", "other.>"])
        self._run(lambda jetstream: jetstream.add_stream(config))

    def _run(self, action: Callable[[JetStreamContext], Awaitable[Any]]) -> None:
        asyncio.run(with_jetstream(self.server, action, **self._login))

    def send(self, numbers: Iterable[int], subject: str = "plants.p{}.seen") -> None:
        """Every tenth message has an invalid payload."""

        async def publish(jetstream: JetStreamContext) -> None:
            for number in numbers:
                data = b'{"n": "x"}' if number % 10 == 0 else b'{"n": %d}' % number
                stored = await jetstream.publish(subject.format(number % 3), data)
                if subject.startswith("plants"):
                    self.acknowledged.add(stored.seq)

        self._run(publish)

    def send_fast(self, numbers: Sequence[int]) -> None:
        """Send to an empty stream without waiting for the acknowledgement of each message."""

        async def publish(jetstream: JetStreamContext) -> None:
            for number in numbers:
                await jetstream._nc.publish(f"plants.p{number % 3}.seen", b'{"n": %d}' % number)
            await jetstream._nc.flush(60)
            while (await jetstream.stream_info("PLANTS")).state.last_seq < len(numbers):
                await asyncio.sleep(0.1)

        self._run(publish)
        self.acknowledged |= {*range(1, len(numbers) + 1)}

    def arguments(self, *more: str) -> list[str]:
        arguments = ["--endpoint", "/endpoints/e", "--catalog", str(self.catalogue), "--to", str(self.target)]
        return ["stream", *arguments, "--json", *more]

    def rows(self, table: str = "*") -> list[dict[str, Any]]:
        files = sorted(self.target.glob(f"{table}/*.parquet"))
        return [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]

    def check_landed(self) -> None:
        """Every acknowledged message is in exactly one table or once in the dead letters."""
        places = Counter((row["_file"], row["_line"]) for row in self.rows())
        assert places == {("nats:PLANTS", sequence): 1 for sequence in self.acknowledged}


async def with_jetstream(server: NatsServer, action: Callable[[JetStreamContext], Awaitable[Any]], **login: Any) -> Any:
    client = await nats.connect(f"nats://127.0.0.1:{server.port}", connect_timeout=10, **login)
    try:
        return await action(client.jetstream(timeout=20))
    finally:
        await client.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    running = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    yield running
    running.kill()


@pytest.fixture
def plants(server: NatsServer, tmp_path: Path) -> Plants:
    return Plants(server, tmp_path)


@pytest.mark.faults
def test_endpoints_of_other_subjects_of_a_stream_land_into_the_same_tables(
    plants: Plants, one_java: dict[str, str]
) -> None:
    """What is between the messages of one endpoint belongs to the other, although both are of one stream."""
    document = json.loads(plants.catalogue.read_text())
    document["endpoints"]["f"] = json.loads(json.dumps(document["endpoints"]["e"]).replace("plants.>", "other.>"))
    plants.catalogue.write_text(json.dumps(document))
    for _ in range(2):
        plants.send(range(1, 5))
        plants.send(range(1, 5), "other.{}")
        plants.send(range(1, 5))
    for endpoint in "ef":
        lines, _ = run(one_java, plants.arguments("--endpoint", f"/endpoints/{endpoint}", "--available-now"))
        assert lines[-1]["read"] == (16 if endpoint == "e" else 8)
    assert Counter(row["_line"] for row in plants.rows()) == dict.fromkeys(range(1, 25), 1)


def test_messages_land_once_as_they_are_on_the_wire(plants: Plants, one_java: dict[str, str]) -> None:
    plants.send(range(1, 20))
    plants.send(range(30), "other.{}")
    headers = b"NATS/1.0\r\nX-Twice: b\r\nX-Twice:a\r\nRaw: \xff\r\n\r\n"
    with socket.create_connection(("127.0.0.1", plants.server.port)) as wire:  # nats-py cannot send a header twice
        sizes = f"{len(headers)} {len(headers) + 2}"
        wire.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
        wire.sendall(f"HPUB plants.odd {sizes}\r\n".encode() + headers + b"\xff\x00\r\nPING\r\n")
        while b"PONG" not in wire.recv(4096):
            pass
    plants.acknowledged.add(50)
    lines, _ = run(one_java, plants.arguments("--available-now", "--max-per-batch", "30"))
    assert [[line[name] for name in ("batch", "read", "lag")] for line in lines[:-1]] == [[0, 19, 20], [1, 1, 0]]
    assert (lines[-1]["landed"], lines[-1]["dead_lettered"]) == (18, 2)
    assert lines[1]["partitions"] == {"nats:PLANTS": 0}
    plants.check_landed()
    seen = {row["_line"]: (row["n"], row["ctx_plant"], row["_endpoint"]) for row in plants.rows("g__seen")}
    assert seen[2] == (2, "p2", "/endpoints/e")
    (odd,) = (row for row in plants.rows("dead_letters") if row["_line"] == 50)
    record = orjson.loads(odd["raw"])
    assert record["headers"] == [
        ["X-Twice", "b"],
        ["X-Twice", "a"],
        ["Raw", {"base64": base64.b64encode(b"\xff").decode()}],
    ]
    assert record["data"] == {"base64": base64.b64encode(b"\xff\x00").decode()}
    assert abs(odd["received"].timestamp() - time.time()) < 600

    plants.send(range(20, 25))
    lines, _ = run(one_java, plants.arguments("--once", "--name", "again", "--from", "3"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(5, 18), (5, 18)]
    plants.check_landed()


OWN_QUERY = """
import json, sys
from wirebook.problems import WirebookError
from wirebook.spark import land, land_batch, match, read_stream
from wirebook.spark.session import session

catalogue, to, checkpoint = sys.argv[1:]
spark, once = session(), {"availableNow": True}
stream = read_stream(spark, "/endpoints/e", catalogue)
columns = stream.columns
matched = match(stream, catalogue).writeStream.format("memory").queryName("matched").trigger(**once).start()
matched.awaitTermination()
outcomes = {row.line: row.outcome for row in spark.table("matched").collect()}

def land_one(frame, number):
    land_batch(frame, number, catalogue, to, identity=("file", "line"))

def land_rest():
    query = stream.writeStream.foreachBatch(land_one).option("checkpointLocation", checkpoint)
    query.trigger(**once).start().awaitTermination()

land_rest()
print(json.dumps([columns, outcomes]), flush=True)
input()
land_rest()
land(stream, catalogue, to, identity=("file", "line"), trigger=once).awaitTermination()
refused = []
for options in ({"starting": "first"}, {"max_per_batch": 10}, {"settings": {"fetch.min.bytes": "1"}}):
    try:
        read_stream(spark, "/endpoints/e", catalogue, **options)
    except WirebookError as error:
        refused.append(str(error))
print(json.dumps(refused))
"""


def test_query_of_the_callers_own_reads_a_stream(plants: Plants, one_java: dict[str, str]) -> None:
    """`foreachBatch` with a checkpoint lands what arrived since its last query; the messages of another query, which
    reads the stream from its beginning, are known."""
    arguments = [str(plants.catalogue), str(plants.target), (plants.folder / "checkpoint").as_uri()]
    plants.send(range(1, 15))
    with subprocess.Popen(
        [sys.executable, "-c", OWN_QUERY, *arguments],
        env=os.environ | one_java,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        first = program.stdout.readline()
        plants.check_landed()
        plants.send(range(15, 20))
        rest, errors = program.communicate("\n")
    assert program.returncode == 0, errors
    columns, outcomes = json.loads(first)
    assert columns == ["value", "file", "line"]
    assert outcomes == {str(line): "matched" for line in range(1, 15)} | {"10": "invalid-payload"}
    assert [text.partition(": ")[0] for text in json.loads(rest)] == ["bad-setting", "/endpoints/e", "/endpoints/e"]
    plants.check_landed()


@pytest.mark.faults
def test_batches_are_limited_also_after_a_restart(plants: Plants, one_java: dict[str, str]) -> None:
    arguments = plants.arguments("--interval", "0", "--max-per-batch", "20")
    plants.send(range(50))
    with started(one_java, arguments) as process:
        stream = Watched(process)
        stream.wait_for(lambda: stream.read() == 50)
        assert stream.end(signal.SIGTERM) == 0
    assert [batch["read"] for batch in stream.batches[:-1]] == [20, 20, 10]
    assert [batch["lag"] for batch in stream.batches[:-1]] == [30, 10, 0]
    plants.send(range(30), "other.{}")
    plants.send(range(50, 80))
    with started(one_java, arguments) as process:
        stream = Watched(process)
        stream.wait_for(lambda: stream.read() == 30)
        assert stream.end(signal.SIGINT) == 130
    assert [batch["read"] for batch in stream.batches[:-1]] == [0, 10, 20]
    plants.check_landed()


@pytest.mark.faults
@pytest.mark.parametrize(
    ("number", "code", "is_terminal"),
    [pytest.param(signal.SIGTERM, 0, False, id="TERM"), pytest.param(signal.SIGINT, 130, True, id="Ctrl-C")],
)
def test_signal_in_a_batch_finishes_it(plants: Plants, number: int, code: int, is_terminal: bool) -> None:
    """Ctrl-C in a terminal reaches all processes of the stream, Java and Python's workers too."""
    plants.send_fast(range(1, 50_001))
    staging = plants.target / "_wirebook" / "staging"
    with started({}, plants.arguments("--interval", "0", "--max-per-batch", "25000")) as process:
        stream = Watched(process)
        while not any(staging.glob("*/*/*")):  # a task has begun to write
            assert process.poll() is None, stream.notes
            time.sleep(0.01)
        if is_terminal:
            os.killpg(process.pid, number)
            assert stream.wait() == code
        else:
            assert stream.end(number) == code
    assert any(note.startswith("stopping after the current batch") for note in stream.notes), stream.notes
    assert not any("was not finished" in note for note in stream.notes)
    *batches, closing = stream.batches
    assert closing["read"] == stream.read() == len(plants.rows()) == 25_000 * len(batches)
    assert 0 < stream.read() < 50_000
    lines, _ = run({}, plants.arguments("--available-now"))
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (50_000 - closing["read"], 0)
    plants.check_landed()


@pytest.mark.faults
def test_messages_that_the_stream_deleted_stop_the_command(plants: Plants, one_java: dict[str, str]) -> None:
    plants.send(range(10))
    run(one_java, plants.arguments("--once"))
    plants.send(range(10, 30))
    asyncio.run(with_jetstream(plants.server, lambda jetstream: jetstream.purge_stream("PLANTS", seq=21)))
    _, err = run(one_java, plants.arguments("--once"), code=2)
    assert "sequence numbers 11 to 20 of 'PLANTS' [messages-lost]; run the command with --skip-lost" in err
    plants.acknowledged -= {*range(11, 21)}
    lines, _ = run(one_java, plants.arguments("--once", "--skip-lost"))
    assert lines[-1]["read"] == 10
    plants.check_landed()
    asyncio.run(with_jetstream(plants.server, lambda jetstream: jetstream.delete_stream("PLANTS")))
    plants.make_stream()
    plants.send(range(100))
    _, err = run(one_java, plants.arguments("--once"), code=2)
    assert "the stream 'PLANTS' was deleted and created again [messages-lost]" in err
    assert "land it in another target" in err
    _, with_skip_lost = run(one_java, plants.arguments("--once", "--skip-lost"), code=2)
    assert with_skip_lost.splitlines()[-1] == err.splitlines()[-1]


def test_position_of_an_earlier_run(plants: Plants) -> None:
    servers = NatsServers("/endpoints/e", (f"nats://127.0.0.1:{plants.server.port}",), Credentials(), None, False)
    source, limits = JetStream(servers, "plants.>", "PLANTS"), ReadLimits("earliest")
    created = find_stream(servers, "plants.>").created
    position = source.position({"endOffset": {"sequence": 20, "newest": 30, "created": created}})
    assert position == {"sequence": 20, "created": created}
    spark: Any = None
    assert source.start_after(spark, position, limits) == "21"
    asyncio.run(with_jetstream(plants.server, lambda jetstream: jetstream.delete_stream("PLANTS")))
    plants.make_stream()
    with pytest.raises(WirebookError, match=r"messages-lost: .*the stream 'PLANTS' was deleted and created again"):
        source.start_after(spark, position, replace(limits, fail_on_data_loss=False))


def test_temporary_error_of_jetstream_is_an_outage(plants: Plants) -> None:
    """For example, while the servers of a cluster elect a leader."""
    servers = NatsServers("/endpoints/e", (f"nats://127.0.0.1:{plants.server.port}",), Credentials(), None, False)

    async def ask(error: Exception) -> None:
        async with _connected(servers, NatsClient()):
            raise error

    for temporary in (ServiceUnavailableError(503, "no leader"), ServerError(500, "insufficient resources")):
        with pytest.raises(ServerAway):
            asyncio.run(ask(temporary))
    with pytest.raises(BadRequestError):
        asyncio.run(ask(BadRequestError(400, "consumer limit reached")))


@pytest.mark.faults
def test_stream_waits_for_a_server_that_restarts(plants: Plants, one_java: dict[str, str]) -> None:
    with started(one_java, plants.arguments("--interval", "0", "--max-per-batch", "40")) as process:
        stream = Watched(process)
        plants.send(range(100))
        stream.wait_for(lambda: stream.read() >= 40)
        plants.server.kill()
        try:
            stream.wait_for(lambda: any(note.startswith("the broker cannot be reached") for note in stream.notes))
        finally:
            plants.server.start()
        plants.send(range(100, 150))
        stream.wait_for(lambda: stream.read() == 150)
        assert stream.end(signal.SIGTERM) == 0
    plants.check_landed()


@pytest.mark.faults
def test_stream_begins_where_a_kill_left_unfinished_offsets(plants: Plants, one_java: dict[str, str]) -> None:
    """Spark refuses to begin in a folder with files that a killed process was still writing."""
    for folder in ("offsets", "commits"):
        path = plants.target / "_wirebook" / "checkpoints" / "e" / folder
        path.mkdir(parents=True)
        (path / ".0.8a5e4c1d-0000-0000-0000-000000000000.tmp").write_text("v1\n")
        (path / "..0.8a5e4c1d-0000-0000-0000-000000000000.tmp.crc").write_bytes(b"crc")
    plants.send(range(1, 10))
    lines, _ = run(one_java, plants.arguments("--available-now"))
    assert lines[-1]["landed"] == 9
    plants.send(range(11, 14))
    lines, _ = run(one_java, plants.arguments("--available-now"))
    assert lines[-1]["landed"] == 3
    plants.check_landed()


@pytest.mark.faults
def test_batches_ask_no_process_for_links_of_the_checkpoint(plants: Plants, tmp_path: Path) -> None:
    """Hadoop's default for a folder runs `readlink` sixteen times a batch, also if it is named by a path."""
    program, calls = tmp_path / "programs" / "readlink", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\nexec {shutil.which("readlink")} "$@"\n')
    program.chmod(0o755)
    plants.send(range(1, 100))
    path, checkpoint = f"{program.parent}:{os.environ['PATH']}", tmp_path / "progress of é%41"
    arguments = plants.arguments("--available-now", "--checkpoint", str(checkpoint), "--max-per-batch", "40")
    lines, _ = run({"PATH": path}, arguments)
    assert lines[-1]["landed"] > 0
    made = calls.read_text().splitlines() if calls.exists() else []
    assert [call for call in made if "/progress" in call] == []
    assert {file.name for file in (checkpoint / "commits").iterdir()} >= {"0", "1", "2"}
    assert planned_sequence(f"file://{checkpoint}") == 99


@pytest.mark.faults
def test_killed_stream_lands_every_message_once(plants: Plants) -> None:
    """The driver is killed at random moments while messages arrive."""
    kills = int(os.environ.get("WIREBOOK_KILLS", "1"))
    arguments = plants.arguments("--interval", "0", "--max-per-batch", "40")
    numbers = iter(range(1_000_000))
    kill_while_producing(arguments, lambda: plants.send([next(numbers) for _ in range(5)]), kills)
    run({}, plants.arguments("--available-now"))
    assert len(plants.acknowledged) > 100
    plants.check_landed()


LOGINS: dict[str, tuple[list[str], dict[str, str], dict[str, str]]] = {
    "password": (
        ["--user", "app", "--pass", "right-secret"],
        {"user": "app", "password": "right-secret"},
        {"username": "app", "password": "right-secret"},
    ),
    "token": (["--auth", "right-secret"], {"token": "right-secret"}, {"token": "right-secret"}),
    "certificate": (["--tlsverify"], {}, {}),
}
"""For each login: the arguments of the server, and the members of the login for nats-py and for a secrets file."""


@pytest.mark.faults
@pytest.mark.parametrize("login", LOGINS)
def test_login_over_tls(one_java: dict[str, str], tmp_path: Path, login: str) -> None:
    """Neither an untrusted server nor a wrong login lands anything, and no output and no file has a secret."""
    arguments, client_login, members = LOGINS[login]
    jetstream = ("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    with tls_server(tmp_path, *jetstream, *arguments) as server:
        plants = Plants(server, tmp_path, server.tls, tls=server.client_settings(), **client_login)
        plants.send(range(1, 30))
        if login == "certificate":
            files = {"certfile": "cert.pem", "keyfile": "key.pem"}
            members = {name: str(server.certificate.parent / file) for name, file in files.items()}
            wrong, refusal = dict[str, str](), ""  # as the version of TLS says it
        else:
            wrong = {name: text.replace("right", "wrong") for name, text in members.items()}
            refusal = "nats: 'Authorization Violation'"
        trusted = {"cafile": str(server.certificate)}
        secrets = tmp_path / "secrets.json"
        command = [*plants.arguments("--available-now"), "--secrets", str(secrets)]
        outputs = []
        for chosen, reason in (
            (members, "certificate verify failed: unable to get local issuer certificate"),
            (wrong | trusted, refusal),
        ):
            secrets.write_text(json.dumps({"/endpoints/e": chosen}))
            lines, err = run(one_java, command, code=2)
            (error,) = (line for line in err.splitlines() if "error: " in line)
            assert error.startswith(f"error: the NATS server cannot be used: {server.tls}: ")
            assert reason in error
            assert "[broker-unreachable]" in error
            assert not plants.rows()
            outputs += [str(lines), err]
        secrets.write_text(json.dumps({"/endpoints/e": members | trusted}))
        lines, err = run(one_java, command)
        assert lines[-1]["read"] == 29
        plants.send(range(30, 40))
        by_environment = {f"WIREBOOK_E_{name.upper()}": text for name, text in (members | trusted).items()}
        lines, again = run(one_java | by_environment, plants.arguments("--available-now"))
        assert lines[-1]["read"] == 10
        outputs += [str(lines), err, again]
    plants.check_landed()
    assert "-secret" not in "".join(outputs)
    assert [path for path in plants.target.rglob("*") if path.is_file() and b"-secret" in path.read_bytes()] == []


def test_server_without_tls_gets_no_login(server: NatsServer) -> None:
    credentials = Credentials(username="app", password="secret")
    servers = NatsServers("/endpoints/e", (f"tls://localhost:{server.port}",), credentials, "app", True)
    with pytest.raises(WirebookError, match=r"broker-unreachable: .*: the server does not use TLS"):
        find_stream(servers, "plants.>")


@pytest.mark.faults
def test_stream_continues_from_its_checkpoint_in_hdfs(plants: Plants, directory: str, one_java: dict[str, str]) -> None:
    """After it was stopped, after its driver was killed, and after a kill left unfinished offsets in HDFS."""
    checkpoint = location_of(f"{directory}/progress")
    assert isinstance(checkpoint, HdfsPath)
    (checkpoint / "offsets" / ".0.0d1c-4f.tmp").write_bytes(b"v1\n")
    arguments = plants.arguments("--checkpoint", str(checkpoint), "--max-per-batch", "20")
    for kills in (False, True):
        before = len(plants.rows())
        with started({} if kills else one_java, [*arguments, "--interval", "0"]) as process:
            stream = Watched(process)
            plants.send(range(30))
            stream.wait_for(lambda before=before: len(plants.rows()) >= before + 30)
            plants.send(range(30))
            if kills:
                os.killpg(process.pid, signal.SIGKILL)  # and Java
            else:
                assert stream.end(signal.SIGTERM) == 0
    assert max(int(name) for name in names(checkpoint, "offsets")) > 2
    lines, _ = run(one_java, [*arguments, "--available-now"])
    assert lines[-1]["read"] <= 60  # what landed before is not read again
    plants.check_landed()
    assert len(plants.acknowledged) == 120
    assert names(checkpoint, "offsets") == names(checkpoint, "commits")
    lines, _ = run(one_java, [*arguments, "--available-now"])
    assert lines[-1]["read"] == 0


def names(checkpoint: HdfsPath, log: str) -> set[str]:
    """The numbers of the batches in one of the logs of a checkpoint."""
    return {path.name for path, _ in (checkpoint / log).below() if not path.name.startswith(".")}


def test_streams_that_cannot_be_read_are_refused(plants: Plants) -> None:
    servers = NatsServers("/endpoints/e", (f"nats://127.0.0.1:{plants.server.port}",), Credentials(), None, False)
    queue = StreamConfig(name="QUEUE", subjects=["jobs.>"], retention=RetentionPolicy.WORK_QUEUE)
    asyncio.run(with_jetstream(plants.server, lambda jetstream: jetstream.add_stream(queue)))
    assert find_stream(servers, "plants.*.seen").name == "PLANTS"
    for subject, message in (
        ("none.>", r"unknown-topic: no JetStream stream keeps messages with the subject 'none\.>'"),
        ("jobs.a", "not-receivable: the stream 'QUEUE' deletes messages"),
        (">", "not-receivable: several JetStream streams keep messages with the subject '>': PLANTS, QUEUE"),
    ):
        with pytest.raises(WirebookError, match=message):
            find_stream(servers, subject)
    plants.server.kill()
    with pytest.raises(WirebookError, match=f"broker-unreachable: .*{plants.server.port}"):
        find_stream(servers, "plants.>")
    plain = NatsServer()
    try:
        without = NatsServers("/endpoints/e", (f"nats://127.0.0.1:{plain.port}",), Credentials(), None, False)
        with pytest.raises(WirebookError, match=r"not-receivable: .*does not run JetStream"):
            find_stream(without, "plants.>")
    finally:
        plain.kill()


def test_account_without_jetstream_is_named(tmp_path: Path) -> None:
    users = (
        "A: {users: [{user: ann, password: secret}]}, B: {jetstream: enabled, users: [{user: bob, password: secret}]}"
    )
    (tmp_path / "nats.conf").write_text(f'jetstream {{store_dir: "{tmp_path}/js"}}\naccounts {{{users}}}\n')
    server = NatsServer("-c", str(tmp_path / "nats.conf"))
    credentials = Credentials(username="ann", password="secret")
    servers = NatsServers("/endpoints/e", (f"nats://127.0.0.1:{server.port}",), credentials, "ann", False)
    try:
        with pytest.raises(WirebookError, match=r"broker-unreachable: .*JetStream not enabled for account"):
            find_stream(servers, "plants.>")
    finally:
        server.kill()


def test_starting_sequences() -> None:
    assert [starting_sequence(text) for text in ("earliest", "latest", "7")] == ["earliest", "latest", "7"]
    for text in ("0", "-1", "first", ""):
        with pytest.raises(ValueError, match="earliest, latest, or a sequence number"):
            starting_sequence(text)
