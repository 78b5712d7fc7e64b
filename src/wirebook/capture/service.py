"""The gateway: receivers of several endpoints, one writer of segments, and a graceful stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from wirebook.capture.committer import Committer
from wirebook.capture.endpoints import Credentials, HttpOptions, ReceivedEndpoint
from wirebook.capture.receiver import Receiver
from wirebook.capture.segments import Sink
from wirebook.capture.status import GatewayStatus
from wirebook.catalog import Catalog
from wirebook.problems import WirebookError

INTERRUPTED: Final = 130
BROKER_RECEIVERS: Final = {
    "MQTT/3.1.1": ("wirebook.capture.mqtt", "MqttReceiver"),
    "MQTT/5.0": ("wirebook.capture.mqtt", "MqttReceiver"),
    "AMQP/1.0": ("wirebook.capture.amqp", "AmqpReceiver"),
    "NATS": ("wirebook.capture.nats", "NatsReceiver"),
    "KAFKA": ("wirebook.capture.kafka", "KafkaReceiver"),
}
"""The module and the class for each protocol; a module is imported only when needed, because it needs an extra."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """Options of a gateway. `values` replace placeholders of endpoints. `credentials` are keyed by XID. `memory` is in
    bytes, `interval` in seconds. `http` has the options of HTTP endpoints."""

    endpoints: Sequence[str]
    values: Mapping[str, str] = field(default_factory=dict)
    credentials: Mapping[str, Credentials] = field(default_factory=dict)
    memory: int = 64 << 20
    metrics: tuple[str, int] | None = None
    interval: float = 10.0
    http: HttpOptions = field(default_factory=HttpOptions)


class Gateway:
    """Runs the receivers of endpoints until a signal stops it.

    `note` prints a line for the operator, and `progress` is called with the status every `interval` seconds.
    """

    def __init__(
        self,
        catalog: Catalog,
        sink: Sink,
        options: GatewayOptions,
        note: Callable[[str], None],
        progress: Callable[[GatewayStatus], None],
    ) -> None:
        self._catalog, self._sink, self._options = catalog, sink, options
        self._note, self._progress = note, progress
        self._stopping: asyncio.Event | None = None
        self._signal: int | None = None
        self.status = GatewayStatus()

    def run(self) -> int:
        """Run until SIGTERM (returns 0) or SIGINT (returns 130). Raises: WirebookError"""
        asyncio.run(self._run())
        return INTERRUPTED if self._signal == signal.SIGINT else 0

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        stopping = self._stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        committer = Committer(self._sink, self._options.memory, self.status, self._note)
        try:
            receivers = self._receivers(committer)
        except WirebookError:
            self._sink.close()
            raise
        writing = asyncio.create_task(committer.run())
        receiving = [asyncio.create_task(receiver.run(stopping)) for receiver in receivers]
        progress = asyncio.create_task(self._report())
        self._note(f"capturing {', '.join(self._options.endpoints)}")
        try:
            await asyncio.wait((*receiving, writing), return_when=asyncio.FIRST_COMPLETED)
            stopping.set()  # also if one of them failed
            if not writing.done():
                await asyncio.wait(receiving)
            committer.close()
            await asyncio.gather(writing, *receiving)
        finally:
            for task in (*receiving, writing, progress):
                task.cancel()
            await asyncio.gather(*receiving, writing, progress, return_exceptions=True)
        self._progress(self.status)

    def _stop(self, number: int) -> None:
        """Stop receiving. At the second signal, exit at once: only durable messages have been acknowledged."""
        if self._signal is not None:
            os._exit(INTERRUPTED)
        self._signal = number
        assert self._stopping
        self._stopping.set()

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._options.interval)
            self._progress(self.status)

    def _receivers(self, committer: Committer) -> list[Receiver]:
        """Create the receivers. Addresses are bound, but brokers are not connected yet. Raises: WirebookError"""
        options, receivers = self._options, list[Any]()
        targets: dict[tuple[str, int], list[Any]] = {}
        for xid in dict.fromkeys(options.endpoints):
            credentials = options.credentials.get(xid, Credentials())
            endpoint = ReceivedEndpoint(self._catalog, xid, options.values, credentials)
            if endpoint.protocol == "HTTP":
                from wirebook.capture.http import DeliveryTarget  # noqa: PLC0415 (each protocol has its libraries)

                target = DeliveryTarget(endpoint, options.http)
                targets.setdefault(target.listen, []).append(target)
                self.status.endpoints.append(target.status)
            else:
                module, name = BROKER_RECEIVERS[endpoint.protocol]
                receiver = getattr(import_module(module), name)
                receivers.append(receiver(endpoint, committer, self._sink.identity, self._note))
                self.status.endpoints.append(receivers[-1].status)
        for group in targets.values():
            from wirebook.capture.http import HttpReceiver  # noqa: PLC0415

            server = HttpReceiver(group, committer, self._note)
            receivers.append(server)
            for target in server.targets:
                self._note(f"{target.endpoint.xid} listens at {server.address}{target.path or '/'}")
        if options.metrics is not None:
            receivers.append(_MetricsServer(options.metrics, self.status, self._note))
        return receivers


class _MetricsServer:
    """Serves metrics and health while the gateway runs."""

    def __init__(self, address: tuple[str, int], status: GatewayStatus, note: Callable[[str], None]) -> None:
        from wirebook.capture.http import url_of  # noqa: PLC0415 (the extra 'serve')
        from wirebook.capture.metrics import MetricsApp, StatusCollector, metrics_listener  # noqa: PLC0415

        self._app = MetricsApp(status, StatusCollector(status))
        self._listener = metrics_listener(address)
        note(f"metrics at {url_of(self._listener)}/metrics, health at /readyz")

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until the gateway stops."""
        from wirebook.capture.http import serve_until  # noqa: PLC0415

        await serve_until(stopping, self._app, self._listener)
