"""Shared by the commands that run until they are stopped: signal handling, metrics and lineage, the final report."""

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
    """Raised on SIGTERM before the run has started."""


class Stop:
    """A stop request from SIGINT or SIGTERM. `exit_code` is the exit code for the signal.

    Once the run has set `is_graceful`, the first signal lets the current batch finish. Earlier signals, and a second
    Ctrl-C, end the command at once.
    """

    def __init__(self) -> None:
        self.is_graceful, self.exit_code = False, OK
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether a stop was requested."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait for a stop request, for at most `seconds`. Return whether there is one."""
        end = time.monotonic() + seconds
        while not self._is_set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))
        return self._is_set

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM while the block runs."""
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
        with suppress(OSError):  # print is not reentrant, and the signal may have interrupted it
            os.write(2, f"stopping after the current batch{again}\n".encode())


@contextmanager
def watching(
    address: tuple[str, int] | None, label: str, lineage: RunLineage, output: BatchOutput
) -> Iterator[RunObservers]:
    """Serve metrics (if `address` is set) and send lineage events while the block runs. Yield the run's callbacks.

    `label` is the value of the metrics' label `endpoint`.
    """
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
    """Callbacks that receive each batch, and connection failures (None when the connection works again)."""

    batch_observers: Sequence[Callable[[BatchFigures], None]]
    on_connection: Callable[[str | None], None] = lambda _: None

    def on_batch(self, batch: BatchFigures) -> None:
        """Call each observer with the batch."""
        for observer in self.batch_observers:
            observer(batch)


def run_until_stopped(run: Callable[[], Report], stop: Stop, output: BatchOutput, to: AnyPath) -> int:
    """Call `run`, print the totals of its batches, and return the exit code.

    Raises: WirebookError, unless the run was stopped in the meantime
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
