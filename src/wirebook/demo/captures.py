"""A day's traffic as capture files: JSON Lines, compressed JSON Lines and Parquet, one file per recorder."""

from __future__ import annotations

import base64
import gzip
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from multiprocessing import get_context, resource_tracker
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from wirebook.demo.message_types import FILES, PER_PAGE
from wirebook.demo.traffic import page

PAGES_AT_A_TIME: Final = 25
FEW: Final = 20_000  # messages that one process generates faster than a second process starts
_PAIR: Final = pa.struct({"name": pa.string(), "value": pa.binary()})
_INSTANT: Final = pa.timestamp("us", tz="UTC")
KAFKA_SCHEMA: Final = pa.schema({
    "protocol": pa.string(),
    "received": _INSTANT,
    "endpoint": pa.string(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": _INSTANT,
    "key": pa.binary(),
    "headers": pa.list_(_PAIR),
    "value": pa.binary(),
})  # fmt: skip


class WrittenCaptures(NamedTuple):
    """The result of writing captures: messages by file, and injected faults by name."""

    files: dict[str, int]
    faults: dict[str, int]

    @property
    def messages(self) -> int:
        """The number of messages in all files."""
        return sum(self.files.values())


class _Sink(Protocol):
    def write(self, lines: bytes, /) -> Any: ...
    def close(self) -> None: ...


class _ParquetSink:
    """Writes lines of Kafka records as rows of a Parquet file."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, KAFKA_SCHEMA, compression="zstd")

    def write(self, lines: bytes, /) -> None:
        self._writer.write_table(kafka_table(lines.splitlines()))

    def close(self) -> None:
        self._writer.close()


def kafka_table(lines: Iterable[bytes]) -> pa.Table:
    """Return Kafka records as columns: bytes as binary, times as timestamps, headers as pairs."""
    return pa.Table.from_pylist([_row(orjson.loads(line)) for line in lines], schema=KAFKA_SCHEMA)


def _row(record: dict[str, Any]) -> dict[str, Any]:
    headers = [{"name": name, "value": _raw(value)} for name, value in record["headers"]]
    times = {name: datetime.fromisoformat(record[name]) for name in ("received", "timestamp")}
    return record | times | {"headers": headers, "key": _raw(record["key"]), "value": _raw(record["value"])}


def _raw(value: Any) -> bytes | None:
    """Return the bytes of a value from a JSON capture."""
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else str(value).encode()


def _open(path: Path) -> _Sink:
    """Open a file for lines. Its bytes depend only on the lines."""
    if path.suffix == ".parquet":
        return _ParquetSink(path)
    return gzip.GzipFile(path, "wb", 3, mtime=0) if path.suffix == ".gz" else path.open("wb")


class _Block(NamedTuple):
    """The content of several pages: the lines of each file, and the counts of messages and faults."""

    lines: dict[str, bytes]
    files: Counter[str]
    faults: Counter[str]


def write_captures(
    folder: Path, count: int, seed: int, *, processes: int | None = None, pages: int = PAGES_AT_A_TIME
) -> WrittenCaptures:
    """Write a day of `count` messages into `folder`. The bytes do not depend on the number of `processes`.

    Cost: 30 microseconds of CPU per message. A few messages are written by one process, unless `processes` is set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files, faults = Counter[str](), Counter[str]()
    cores = 1 if count <= FEW else min(os.cpu_count() or 1, 4)
    with ExitStack() as stack:
        sinks = {name: _open(folder / name) for name in FILES}
        for sink in sinks.values():
            stack.callback(sink.close)
        for block in _blocks(count, seed, processes or cores, pages):
            for name, lines in block.lines.items():
                sinks[name].write(lines)
            files.update(block.files)
            faults.update(block.faults)
    return WrittenCaptures(dict(files), dict(faults))


def _blocks(count: int, seed: int, processes: int, pages: int) -> Iterator[_Block]:
    firsts = range(0, -(-count // PER_PAGE), pages)
    block = partial(_block, pages=pages, count=count, seed=seed)
    if processes == 1:
        yield from map(block, firsts)
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        with _holding_interrupts():
            blocks = pool.map(block, firsts)
        yield from blocks
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Delay a SIGINT that arrives inside the block until its end. Processes that start inside never receive one.

    Ctrl-C reaches all processes of a terminal, but only this one should report it.
    """
    resource_tracker.ensure_running()  # it would start with the first process, and unblock SIGINT
    arrived = False

    def hold(*_: object) -> None:
        nonlocal arrived
        arrived = True

    is_main = threading.current_thread() is threading.main_thread()  # only the main thread sets and runs handlers
    handler = signal.signal(signal.SIGINT, hold) if is_main else None  # another thread may still receive the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # processes inherit the mask
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_main:
            signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)


def _block(first: int, pages: int, count: int, seed: int) -> _Block:
    lines: dict[str, list[bytes]] = {}
    faults = Counter[str]()
    for number in range(first, min(first + pages, -(-count // PER_PAGE))):
        for message in page(number, count, seed):
            lines.setdefault(message.message_type.file, []).append(message.line)
            if message.fault is not None:
                faults[message.fault.name] += 1
    files = Counter({name: len(line) for name, line in lines.items()})
    return _Block({name: b"\n".join(line) + b"\n" for name, line in lines.items()}, files, faults)
