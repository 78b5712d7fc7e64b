"""Follow a folder: land new messages as they arrive, until a stop is requested.

Each pass refreshes the catalogue, lists the source, and lands the messages that are new to the target, as `land` does.

Spec: docs/how-to/capture.md#land-while-the-gateway-runs
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from wirebook.catalog.live import LiveCatalog
from wirebook.landing.job import LandOptions, catalogue_of, run_settings
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import CommittedBatch, Runner
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.files import Scan
from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import is_refusal
from wirebook.problems import WirebookError

__all__ = ["FollowJob", "StopRequest", "follow", "is_transient"]

TRANSIENT_CODES: Final = ("target-locked", "store-failed")
"""Problems that may resolve themselves: another run writes to the target, or a store cannot be reached."""
RETRY_SECONDS: Final = 60.0
"""The maximum wait after a failed pass, unless the interval between passes is longer."""
MAX_DOUBLINGS: Final = 16
"""Each consecutive failure doubles the wait, up to this number of failures."""


def is_transient(error: WirebookError) -> bool:
    """Whether a retry may succeed. It cannot if a store rejects the request, for example for its credentials."""
    return all(problem.code in TRANSIENT_CODES and not is_refusal(problem) for problem in error.problems)


class StopRequest(Protocol):
    """Tells a run to stop. `threading.Event` implements this protocol, but must not be set in a signal handler."""

    def is_set(self) -> bool: ...
    def wait(self, seconds: float, /) -> bool:
        """Wait until a stop is requested, for at most `seconds`; return whether it is requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowJob:
    """The source to follow, the target, and the options.

    Units: `interval` is the time between the starts of two passes, in seconds.
    """

    source: Location
    to: Location
    interval: float
    options: LandOptions = field(default_factory=LandOptions)


def follow(
    job: FollowJob,
    live: LiveCatalog,
    stop: StopRequest,
    runner: Runner,
    *,
    on_batch: Callable[[CommittedBatch], None] = lambda _: None,
    on_pass: Callable[[Report], None] = lambda _: None,
    on_failure: Callable[[str | None], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> Report:
    """Land the messages in the source, and those that arrive later, until `stop` is set. A running batch is completed.

    Returns the sum of all batches, with the problems of the last pass. `on_pass` is called with the report of each
    pass. If a store cannot be reached, or another run has locked the target, the pass is retried: `on_failure` is
    called with the reason, and with None when a pass succeeds; `note` is called with a message about each retry. Until
    one pass has succeeded, failures are raised instead.

    Cost: a pass without new messages lists the source and reads the size and modification time of each file.
    Raises: WirebookError, as `wirebook.landing.land`
    """
    total, target, scans = Report(), Target(job.to), dict[str, Scan]()
    catalog = live.catalog
    catalogue, passes, failures = catalogue_of(catalog), 0, 0

    def landed(batch: CommittedBatch) -> None:
        total.include(batch.report)
        on_batch(batch)

    while True:
        started = time.monotonic()
        if (newest := live.refresh()) is not catalog:
            catalog, catalogue = newest, catalogue_of(newest)
        settings = run_settings(catalog, runner, LandOptions(**job.options, on_batch=landed))
        settings.is_stopping = stop.is_set
        try:
            report = land_files(settings, job.source, catalogue, target, scans)
        except WirebookError as error:
            if not is_transient(error) or not passes:
                raise
            failures = min(failures + 1, MAX_DOUBLINGS)
            target = Target(job.to)  # the records cached in the old object may be stale
            note(f"trying again: {error}")
            on_failure(str(error))
        else:
            if not passes:
                total.skipped, total.skipped_files = report.skipped, report.skipped_files
            passes, failures = passes + 1, 0
            total.problems = report.problems
            total.files += report.files
            total.recovered += report.recovered
            on_failure(None)
            on_pass(report)
        wait = min(job.interval * 2**failures, max(RETRY_SECONDS, job.interval))
        if stop.wait(max(0.0, wait - (time.monotonic() - started))):
            break
    return total
