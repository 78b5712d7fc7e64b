"""The process in which PySpark plans the batches of a JetStream stream, when Spark has closed its connection."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

import pytest
from pyspark.serializers import CloudPickleSerializer, UTF8Deserializer, read_int, write_int, write_with_length
from pyspark.sql.streaming import python_streaming_source_runner as runner
from pyspark.sql.types import StructType

from wirebook.capture.endpoints import Credentials
from wirebook.capture.jetstream import KeptStream, StreamReplaced
from wirebook.capture.nats_client import NatsServers
from wirebook.spark.jetstream import JetStreamDataSource, JetStreamReader, Position, StreamRange

PLANNER = """
import socket, sys
from pyspark.sql.streaming.python_streaming_source_runner import main
stream = socket.socket(fileno=int(sys.argv[1])).makefile("rwb", 65536)
main(stream, stream)
"""


def requests(count: int) -> bytes:
    """What Spark sends to the process: its settings, the data source, and some requests to commit an offset."""
    written = BytesIO()

    def write_text(text: str) -> None:
        write_with_length(text.encode(), written)

    source = JetStreamDataSource(
        StreamRange(
            NatsServers("/endpoints/e", ("nats://127.0.0.1:1",), Credentials(), None, False), "S", ">", "earliest"
        ).options()
    )
    write_text("{}.{}".format(*sys.version_info))
    write_text("/nowhere")
    write_int(0, written)
    CloudPickleSerializer()._write_with_length(source, written)
    write_text(StructType().json())
    write_int(1000, written)
    for _ in range(count):
        write_int(runner.COMMIT_FUNC_ID, written)
        write_text("{}")
    return written.getvalue()


def test_stream_that_was_created_again_is_noticed_where_it_has_fewer_messages() -> None:
    """No message is new then, but those of the new stream have numbers that were read before."""
    servers = NatsServers("/endpoints/e", ("nats://127.0.0.1:1",), Credentials(), None, False)
    reader = JetStreamReader(StreamRange(servers, "S", ">", "earliest"))
    reader._state = lambda: KeptStream("S", 1, 3, "later")  # type: ignore[method-assign]
    start, end = (Position(20, 20, created).to_offset() for created in ("before", "later"))
    assert list(reader.partitions(start, start)) == []
    with pytest.raises(StreamReplaced, match="the stream 'S' was deleted and created again"):
        reader.partitions(start, end)


@pytest.mark.parametrize("shutdown", [socket.SHUT_WR, socket.SHUT_RDWR], ids=["requests", "requests-and-answers"])
def test_closed_connection_ends_the_process_without_a_traceback(shutdown: int) -> None:
    sent = requests(3)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", PLANNER, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
        theirs.close()
        ours.sendall(sent)
        ours.shutdown(shutdown)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


WORKER = """
import wirebook.spark.jetstream
from pyspark.serializers import write_int

def main(infile, outfile):
    infile.read()  # until Spark closes the connection
    write_int(-4, outfile)
"""


@pytest.mark.parametrize("module", ["pyspark_of_tests", "pyspark_without_us"])
def test_end_of_a_plan_that_spark_does_not_read_prints_no_traceback(module: str, tmp_path: Path) -> None:
    """PySpark's daemon itself, which prints a traceback without the import of our data source."""
    is_quiet = module == "pyspark_of_tests"
    (tmp_path / f"{module}.py").write_text(WORKER if is_quiet else WORKER.replace("wirebook.spark.jetstream", "sys"))
    settings = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": tempfile.gettempdir(),  # the path of a socket has at most 107 bytes
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "true",
    }
    command, pipe = [sys.executable, "-m", "pyspark.daemon", module], subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | settings, stdin=pipe, stdout=pipe, stderr=pipe) as daemon:
        assert daemon.stdin
        assert daemon.stdout
        assert daemon.stderr
        path = UTF8Deserializer().loads(daemon.stdout)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            worker = read_int(connection.makefile("rb"))
            connection.shutdown(socket.SHUT_RDWR)
        while Path(f"/proc/{worker}").exists():
            time.sleep(0.05)
        daemon.stdin.close()
        errors = daemon.stderr.read().decode()
    assert ("BrokenPipeError" in errors) is not is_quiet
