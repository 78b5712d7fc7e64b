"""A stream, or a gateway and what follows its segments, in processes of their own: batches, CPU time and memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

from measure import Clock, memory_now
from oracle import Void

SECONDS: Final = 180
"""How long a stream may take to start, to land the next batch, and to end."""
GATEWAY: Final = "gateway"
"""The role of a gateway, beside those of a stream (`measure.ROLES`)."""


class Query:
    """A stream that runs, and the batches that it has printed. Its CPU time includes that of its `gateway`."""

    def __init__(
        self, process: subprocess.Popen[bytes], errors: Path, gateway: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.batches: list[dict[str, Any]] = []
        self.memory: list[tuple[float, dict[str, int]]] = []
        self._process, self._errors, self._gateway = process, errors, gateway
        self._clocks = [Clock(process.pid), *([Clock(gateway.pid)] if gateway else [])]
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if "batch" in (figures := json.loads(line)):
                self.batches.append(figures)

    @property
    def read(self) -> int:
        return sum(batch["read"] for batch in self.batches)

    def cpu_seconds(self) -> float:
        return sum(clock.seconds() for clock in self._clocks)

    def wait(self, messages: int) -> None:
        """Wait until so many messages have landed.

        Raises: Void, if the stream ends, or no batch lands for a long time
        """
        batches, end = 0, time.monotonic() + SECONDS
        while self.read < messages:
            if len(self.batches) > batches:
                batches, end = len(self.batches), time.monotonic() + SECONDS
            if self._process.poll() is not None or time.monotonic() > end:
                raise Void(f"the stream has read {self.read} of {messages} messages: {self._errors.read_text()}")
            time.sleep(0.1)

    @contextmanager
    def sampling_memory(self, every: float, after: float) -> Iterator[None]:
        """Append the bytes in memory by role to `memory` while the block runs: every `every` seconds, the first time
        after `after` more."""
        done, started = threading.Event(), time.monotonic() + after

        def sample() -> None:
            done.wait(after)
            while not done.wait(every):
                sizes = memory_now(self._process.pid)
                if self._gateway:
                    sizes[GATEWAY] = sum(memory_now(self._gateway.pid).values())
                self.memory.append((time.monotonic() - started, sizes))

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def end(self) -> None:
        """Stop the stream after its batch.

        Raises: Void, if it fails
        """
        self._process.send_signal(signal.SIGTERM)
        if self._process.wait(SECONDS):
            raise Void(f"the stream failed: {self._errors.read_text()}")


@contextmanager
def streaming(catalogue: Path, to: Path, *options: str) -> Iterator[Query]:
    """Run a stream from the endpoint ``e`` to Delta tables, without pauses between batches."""
    errors = to.with_suffix(".log")
    with _running(
        "stream", catalogue, to, errors, "--format", "delta", "--interval", "0", "--json", *options
    ) as process:
        yield Query(process, errors)


@contextmanager
def following(catalogue: Path, to: Path) -> Iterator[Query]:
    """Run a gateway for the endpoint ``e``, which completes a segment after a second, and a command that looks for new
    segments every second and lands them in Delta tables."""
    errors, segments = to.with_suffix(".log"), to.with_name("segments")
    notes = segments.with_suffix(".log")
    with _running("capture", catalogue, segments, notes, "--segment-age", "1s") as gateway:
        end = time.monotonic() + SECONDS
        while b"capturing /" not in notes.read_bytes():
            if gateway.poll() is not None or time.monotonic() > end:
                raise Void(f"the gateway does not capture: {notes.read_text()}")
            time.sleep(0.1)
        options = ("--format", "delta", "--no-report", "--follow", "1s", "--json")
        with _running("land", catalogue, to, errors, *options, source=[str(segments)]) as process:
            yield Query(process, errors, gateway)


@contextmanager
def _running(
    command: str, catalogue: Path, to: Path, errors: Path, *options: str, source: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command for the endpoint ``e`` until the end of the block."""
    program = str(Path(sys.executable).parent / "wirebook")
    arguments = [*source, "--endpoint", "/endpoints/e", "--catalog", str(catalogue), "--to", str(to), *options]
    with errors.open("wb") as log:
        process = subprocess.Popen([program, command, *arguments], stdout=subprocess.PIPE, stderr=log)  # noqa: S603
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def ended(batch: dict[str, Any]) -> float:
    """When a batch was committed, in seconds since 1970."""
    return datetime.fromisoformat(batch["started"]).timestamp() + float(batch["seconds"])


def sustained(batches: list[dict[str, Any]]) -> float:
    """Messages per second in the second half of the batches, when Java has compiled most of its code."""
    half = len(batches) // 2
    return sum(batch["read"] for batch in batches[half:]) / (ended(batches[-1]) - ended(batches[half - 1]))


def growth(samples: list[tuple[float, dict[str, int]]]) -> dict[str, tuple[float, float]]:
    """For each role, the mean number of bytes in the second half of a run, and its slope there, in bytes per minute."""
    end = samples[-1][0]
    late = [sample for sample in samples if sample[0] >= end / 2]
    moments = [moment for moment, _ in late]
    middle, figures = mean(moments), {}
    for role in samples[0][1]:
        sizes = [size[role] for _, size in late]
        average = mean(sizes)
        products = [(moment - middle) * (size - average) for moment, size in zip(moments, sizes, strict=True)]
        spread = sum((moment - middle) ** 2 for moment in moments)
        figures[role] = (average, 60 * sum(products) / spread if spread else 0.0)
    return figures
