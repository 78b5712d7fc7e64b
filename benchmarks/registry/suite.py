"""Measures a registry of one size: import, start, reads, collections, writes, and a mixed load."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Thread

import httpx
import wrk
from catalogue import Catalogue, message
from figures import Figures, bare_reads
from servers import Server, bare, registry

CLIENTS = 16
SPREAD = 1000
"""Number of entities that the reads cycle through."""

PAGE = 100
MIB = 1 << 20


@dataclass
class Suite:
    """One registry. `database` is its URL, `file` its file if it is SQLite. Times are in seconds."""

    catalogue: Catalogue
    database: str
    file: Path | None
    folder: Path
    figures: Figures
    seconds: int

    def run(self) -> None:
        with registry(self.database, self.folder) as server:
            self._import(server)
        with registry(self.database, self.folder) as server:
            self._started(server)
            self._reads(server)
            self._collections(server)
            self._writes(server)
            self._together(server)

    # -- measurements -----------------------------------------------------------------------------------------------

    def _import(self, server: Server) -> None:
        with self._client(server) as client:
            cpu, spent = server.cpu, 0.0
            for _, body in self.catalogue.bodies():
                started = time.perf_counter()
                client.post("/", content=body).raise_for_status()
                spent += time.perf_counter() - started
        count = self.catalogue.messages
        self.figures.add("bulk import, messages/s", count / spent, least=4000, note=_cpu(server.cpu - cpu, count))
        if self.file:
            size = sum(path.stat().st_size for path in self.file.parent.glob(f"{self.file.name}*"))
            self.figures.add("disk, bytes per message", size / count, most=4096)

    def _started(self, server: Server) -> None:
        self.figures.add("ready, s", server.ready, most=2)
        with self._client(server) as client:
            client.get(self.catalogue.path(0)).raise_for_status()
        self._memory(server, "at rest")

    def _reads(self, server: Server) -> None:
        with self._client(server) as client:
            paths = [self.catalogue.path(n) for n in self._numbers()]
            answers = [client.get(path) for path in paths]
            tags = [answer.raise_for_status().headers["etag"] for answer in answers]
            again = client.get(paths[0], headers={"If-None-Match": tags[0]})
            assert again.status_code == 304, f"the response to a current ETag was {again.status_code}"
        if self.file:
            self.figures.add("SQLite alone, same rows, /s", bare_reads(self.file, paths))
        with bare(answers[0].content, self.folder) as other:
            self._load("uvicorn alone, same bytes, /s", other, [(path, None) for path in paths])
        with self._watched(server, "reads"):
            self._load("read by id, /s", server, [(path, None) for path in paths], least=5000, slowest=10)
        self._load("read by id, not cached, /s", server, [(path, '"COUNT"') for path in paths])
        self._load("not modified, /s", server, list(zip(paths, tags, strict=True)), least=7000)

    def _collections(self, server: Server) -> None:
        group = f"/messagegroups/{max(self._group_sizes())}/messages"
        one = self.catalogue.groups == 1
        collection = group if one else "/messagegroups"
        first = f"{collection}?limit={PAGE}"
        last = f"{first}&after={self._before_last_page(one)}"
        with self._watched(server, "paging"):
            rate = self._load(f"first page of {PAGE}, /s", server, [(first, None)], least=250)
            self._load(f"last page of {PAGE}, /s", server, [(last, None)], least=rate / 1.2)
        with self._client(server) as client:
            self._took("all groups with counts, ms", client, "/messagegroups", most=50)
            name = self.catalogue.messages - 1
            where = "/messagegroups?inline=messages&filter=messages."
            self._took("indexed filter, ms", client, f"{where}name=Order {name} placed", most=100)
            self._took("any other filter, ms", client, f"{where}protocoloptions.topic=orders-7x", most=1000, none=True)
            with self._watched(server, "export"):
                most = 1000 * max(self.catalogue.messages / 10_000, 1)
                self._took("export, ms", client, "/export", most=most, times=1)

    def _writes(self, server: Server) -> None:
        body = json.dumps(message(1)).encode()
        commits = self.figures.commits
        goals = (600.0, 1200.0) if commits > 3000 else (0.6 * commits, 1.2 * commits)
        for clients, goal in zip((1, CLIENTS), goals, strict=True):
            path = f"/messagegroups/g0/messages/new{clients}-%d"
            cpu = server.cpu
            load = wrk.creates(server.url, path, body, self.folder, self.seconds, clients=clients)
            note = f"p99 {load.p99:.1f} ms, {_cpu(server.cpu - cpu, load.count)}"
            self.figures.add(
                f"durable creates, {clients} clients, /s", load.rate, least=goal, note=note, failed=load.failed
            )

    def _together(self, server: Server) -> None:
        """Measure reads by id while a slow filter, an export and an import run in loops."""
        _, body = next(self.catalogue.bodies())
        slow = "/messagegroups?filter=messages.protocoloptions.topic=orders-7x"
        with self._busy(server, ("GET", slow, b""), ("GET", "/export", b""), ("POST", "/", body)):
            paths = [(self.catalogue.path(n), None) for n in self._numbers()]
            self._load("read by id, under mixed load, /s", server, paths, slowest=100)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _numbers(self) -> Iterator[int]:
        step = max(self.catalogue.messages // SPREAD, 1)
        return iter(range(0, self.catalogue.messages, step))

    def _group_sizes(self) -> dict[str, int]:
        return {"g0": self.catalogue.messages // self.catalogue.groups}

    def _before_last_page(self, one: bool) -> str:
        """The id before the last page: of the messages of the only Group, or of the Groups."""
        name, count = ("m", self.catalogue.messages) if one else ("g", self.catalogue.groups)
        return sorted(f"{name}{n}" for n in range(count))[-PAGE - 1]

    def _load(
        self,
        what: str,
        server: Server,
        targets: list[tuple[str, str | None]],
        *,
        least: float | None = None,
        slowest: float | None = None,
    ) -> float:
        cpu = server.cpu
        load = wrk.reads(server.url, targets, self.folder, self.seconds, CLIENTS)
        note = f"p50 {load.p50:.1f} ms, {_cpu(server.cpu - cpu, load.count)}"
        self.figures.add(what, load.rate, least=least, note=note, failed=load.failed)
        if slowest is not None:
            self.figures.add(what.replace(", /s", ", p99 ms"), load.p99, most=slowest)
        return load.rate

    def _took(
        self, what: str, client: httpx.Client, url: str, *, most: float, times: int = 3, none: bool = False
    ) -> None:
        """Add the median response time in milliseconds. `none`: the response must be empty."""
        spent = []
        for _ in range(times):
            started = time.perf_counter()
            answer = client.get(url)
            spent.append((time.perf_counter() - started) * 1000)
            assert answer.status_code == 200, f"{url}: {answer.status_code} {answer.text[:300]}"
            assert (answer.text == "{}") is none, f"{url}: {answer.text[:300]}"
        self.figures.add(what, median(spent), most=most, note=f"{len(answer.content) / MIB:.1f} MiB")

    def _memory(self, server: Server, when: str, size: int = 0) -> None:
        self.figures.add(f"memory {when}, MiB", max(size, server.memory) / MIB, most=250)

    @contextmanager
    def _watched(self, server: Server, when: str) -> Iterator[None]:
        """Add the peak memory of the server during the block."""
        most, done = [server.memory], []

        def watch() -> None:
            while not done:
                most[0] = max(most[0], server.memory)
                time.sleep(0.1)

        thread = Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            done.append(True)
            thread.join()
        self._memory(server, f"during {when}", most[0])

    @contextmanager
    def _busy(self, server: Server, *requests: tuple[str, str, bytes]) -> Iterator[None]:
        done: list[bool] = []
        threads = [Thread(target=self._repeat, args=(server, request, done.__len__)) for request in requests]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            done.append(True)
            for thread in threads:
                thread.join()

    def _repeat(self, server: Server, request: tuple[str, str, bytes], is_over: Callable[[], int]) -> None:
        method, url, body = request
        with self._client(server) as client:
            while not is_over():
                client.request(method, url, content=body)

    def _client(self, server: Server) -> httpx.Client:
        return httpx.Client(base_url=server.url, timeout=600, trust_env=False, headers={"Accept-Encoding": "identity"})


def _cpu(seconds: float, count: int) -> str:
    return f"{seconds * 1e6 / max(count, 1):.0f} µs CPU per request"
