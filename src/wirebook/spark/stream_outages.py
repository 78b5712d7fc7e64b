"""Failures of a stream. A continuous stream waits for transient failures to pass; all others end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wirebook.landing.follow import StopRequest, is_transient
from wirebook.problems import Problem, WirebookError
from wirebook.spark.stream_batches import Batches
from wirebook.spark.stream_sources import StreamSource

__all__ = ["Outages", "explained"]

RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds to wait between attempts to reach a broker or a store again. The last value repeats."""


def explained(failure: Exception, source: StreamSource) -> Exception:
    """Convert the failure of a stream to a problem, if there is a specific code for it; else return it unchanged."""
    if lost := source.lost(failure):
        return lost
    if not _unreachable(failure) and (away := source.away(failure)):
        message = f"the broker cannot be reached ({source.description}): {away}"
        return WirebookError(Problem("broker-unreachable", message, hint="run the command again to continue"))
    return failure


def _unreachable(failure: Exception) -> str | None:
    """Return why the broker cannot be reached, if the failure already is this problem; else None."""
    problem = failure.problems[0] if isinstance(failure, WirebookError) else None
    return problem.message if problem is not None and problem.code == "broker-unreachable" else None


class Outages:
    """Waits while the broker cannot be reached or the target cannot be written to."""

    def __init__(
        self,
        source: StreamSource,
        batches: Batches,
        stop: StopRequest,
        on_connection: Callable[[str | None], None],
        note: Callable[[str], None],
    ) -> None:
        self._source, self._batches, self._stop = source, batches, stop
        self._on_connection, self._note = on_connection, note
        self._attempts = 0
        """How often a batch has failed because of the target since the last batch that landed."""

    def wait(self, failure: Exception, check: Callable[[], None]) -> None:
        """Wait until the stream can be restarted, or is stopped. `check` fails if the broker cannot be reached.

        Raises: the failure as a problem, if it does not pass by itself
        """
        if isinstance(failure, WirebookError) and is_transient(failure):
            self._await_target(failure)
        elif away := _unreachable(failure) or self._source.away(failure):
            self._note(f"the broker cannot be reached, trying again: {away}")
            self._on_connection(away)
            self._await_broker(check)
        else:
            raise explained(failure, self._source)

    def note_batch(self) -> None:
        """Record that a batch has landed, which shows that the target can be written to."""
        if self._attempts:
            self._note("the target can be written to again")
            self._on_connection(None)
            self._attempts = 0

    def _await_target(self, failure: WirebookError) -> None:
        if not self._attempts:
            self._note(f"the target cannot be written to, trying again: {failure}")
        self._on_connection(str(failure))
        self._batches.forget_target()
        if self._stop.wait(_pause(self._attempts)):
            self._note("the last batch was not finished; the next run lands it")
        self._attempts += 1

    def _await_broker(self, check: Callable[[], None]) -> None:
        attempt = 0
        while not self._stop.wait(_pause(attempt)):
            attempt += 1
            try:
                check()
            except WirebookError as error:
                if not _unreachable(error):
                    raise
            else:
                self._on_connection(None)
                return


def _pause(attempt: int) -> float:
    return RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)]
