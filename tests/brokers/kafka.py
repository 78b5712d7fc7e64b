"""Apache Kafka for tests: one KRaft node, plain and with SASL_SSL, from the jars of a lock file.

The jars are fetched once from Maven Central into the cache of `wirebook.spark.jars`. Tests are skipped if they cannot
be fetched, or if there is no Java.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.brokers import free_port, wait_for
from wirebook.problems import WirebookError
from wirebook.spark.jars import cache_folder, class_path, fetch, locked_jars
from wirebook.spark.java import find_java

LOCK = Path(__file__).parent / "jars.lock"
GROUP = "kafka-broker"
USERS = {"app": "app-secret-5f1c"}
"""Users of PLAIN."""
SCRAM_USERS = {"scr": "scr-secret-9a7e"}
"""Users of SCRAM-SHA-512."""
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{tls_listener}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{tls_advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
"""
TLS_SETTINGS = """
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
LOGGING = """
status=error
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c{1}: %m%n
"""


class KafkaBroker:
    """A broker that can be killed and started again with its data. It listens at `plain` and `tls` (host:port)."""

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        self.folder, self._has_tls = folder, tls
        self._port, self._controller, self._tls_port = free_port(), free_port(), free_port()
        self.plain, self.tls = f"127.0.0.1:{self._port}", f"localhost:{self._tls_port}"
        self.certificate = folder / "ca.pem"
        self._process: subprocess.Popen[bytes] | None = None
        jars = class_path(locked_jars(GROUP, LOCK), cache_folder())
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += [f"-Dlog4j2.configurationFile={folder}/log4j2.properties"]
        self._java = [str(find_java().executable), *options, "-cp", jars]
        self._write_settings()

    def _write_settings(self) -> None:
        settings = SETTINGS.format(
            port=self._port,
            controller=self._controller,
            folder=self.folder,
            tls_listener=f",SASL_SSL://127.0.0.1:{self._tls_port}" if self._has_tls else "",
            tls_advertised=f",SASL_SSL://localhost:{self._tls_port}" if self._has_tls else "",
        )
        scram = []
        if self._has_tls:
            make_certificates(self.folder)
            users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
            settings += TLS_SETTINGS.format(folder=self.folder, users=users)
            for name, password in SCRAM_USERS.items():
                scram += ["--add-scram", f"SCRAM-SHA-512=[name={name},password={password}]"]
        self._settings = self.folder / "server.properties"
        self._settings.write_text(settings)
        (self.folder / "log4j2.properties").write_text(LOGGING)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # As one argument: an id may begin with "-", which the tool would read as an option.
        command = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._settings), *scram]
        subprocess.run([*self._java, *command], check=True)

    def start(self) -> None:
        with (self.folder / "out").open("ab") as log:
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self._port, self._process)
        if self._has_tls:
            wait_for(self._tls_port, self._process)

    def kill(self) -> None:
        """End the broker without a chance to say goodbye."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def make_certificates(folder: Path) -> None:
    """A certificate authority, and a certificate of localhost for the broker: ca.pem, broker.pem."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    days = ("-days", "2", "-nodes", "-newkey", "rsa:2048")
    openssl("req", "-x509", *days, "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(
        "req", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request.pem"
    )
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    ca = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    openssl("x509", "-req", "-days", "2", "-in", "request.pem", *ca, "-extfile", "names", "-out", "cert.pem")
    parts = [(folder / name).read_text() for name in ("key.pem", "cert.pem", "ca.pem")]
    (folder / "broker.pem").write_text("".join(parts))


@contextlib.contextmanager
def running_kafka(folder: Path, *, tls: bool = False) -> Iterator[KafkaBroker]:
    """Run a broker in a folder; skips the test if that is not possible on this machine."""
    if tls and not shutil.which("openssl"):
        pytest.skip("needs openssl on the PATH")
    try:
        fetch(locked_jars(GROUP, LOCK), cache_folder())
        broker = KafkaBroker(folder, tls=tls)
    except WirebookError as error:
        pytest.skip(f"needs Kafka and Java: {error}")
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
