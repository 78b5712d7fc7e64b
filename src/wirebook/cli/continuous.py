"""What the commands share that run until they are stopped: signals, metrics and lineage, the end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Final

from wirebook.cli.exit_codes import CANNOT_RUN, INTERRUPTED, OK
from wirebook.cli.run_output import BatchOutput
from wirebook.problems import WirebookError

if TYPE_CHECKING:
    from wirebook.landing.runs.report import Report
    from wirebook.landing.stores.locations import AnyPath
    from wirebook.landing.watch.figures import BatchFigures
    from wirebook.landing.watch.lineage import RunLineage

POLL_SECONDS: Final = 0.1


class Terminated(BaseException):
    """SIGTERM before the run has started."""


class Stop:
    """Set by SIGINT and SIGTERM once the run `is_graceful`; `exit_code` is that of the signal. Before that, and on a
    second Ctrl-C, signals end the command at once."""

    def __init__(self) -> None:
        self.is_graceful, self.exit_code = False, OK
        self._is_set = False

    def is_set(self) -> bool:
        """Whether a signal has arrived."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until a signal arrives or the time is over."""
        end = time.monotonic() + seconds
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
        return self._is_set

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Handle signals inside the block."""
        handlers = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        is_interrupt = number == signal.SIGINT
        if not self.is_graceful or (is_interrupt and self._is_set):
            raise KeyboardInterrupt if is_interrupt else Terminated
        self._is_set, self.exit_code = True, INTERRUPTED if is_interrupt else OK
        again = "; press Ctrl-C again to stop at once" if is_interrupt else ""
        with suppress(OSError):  # not print: the signal may have interrupted one
            os.write(2, f"stopping after the current batch{again}\n".encode())


@contextmanager
def watching(
    address: tuple[str, int] | None, label: str, lineage: RunLineage, output: BatchOutput
) -> Iterator[RunObservers]:
    """Serve metrics, if they have an address, and send events of lineage while the block runs. `label` is the
    `endpoint` of the metrics."""
    observers: list[Callable[[BatchFigures], None]] = [lambda batch: lineage.add(batch.report), output.show]
    with ExitStack() as stack:
        stack.enter_context(lineage)
        if address is None:
            yield RunObservers(observers)
            return
        from wirebook.capture.metrics import MetricsApp, metrics_listener, serving  # noqa: PLC0415 (the extra 'serve')
        from wirebook.landing.watch.metrics import StreamMetrics  # noqa: PLC0415

        metrics = StreamMetrics(label)
        url = stack.enter_context(serving(MetricsApp(metrics, metrics), metrics_listener(address)))
        output.note(f"metrics at {url}/metrics, health at /healthz and /readyz")
        yield RunObservers([metrics.add, *observers], metrics.set_connection)


@dataclass(frozen=True, slots=True)
class RunObservers:
    """What is told of each batch, and of the reason why a source or store cannot be reached (None: it can)."""

    batch_observers: Sequence[Callable[[BatchFigures], None]]
    on_connection: Callable[[str | None], None] = lambda _: None

    def on_batch(self, batch: BatchFigures) -> None:
        """Tell each observer."""
        for observer in self.batch_observers:
            observer(batch)


def run_until_stopped(run: Callable[[], Report], stop: Stop, output: BatchOutput, to: AnyPath) -> int:
    """Call `run`, and print the sum of its batches; returns the exit code.

    Raises: WirebookError, unless the run was stopped meanwhile
    """
    try:
        with stop.handling_signals():
            report = run()
    except Terminated:
        return OK
    except WirebookError:
        if not stop.is_set():
            raise
        output.note("the last batch was not finished; the next run lands it")
        return stop.exit_code
    output.close(report, to)
    return CANNOT_RUN if report.has_errors and stop.exit_code == OK else stop.exit_code
