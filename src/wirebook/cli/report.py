"""`wirebook report`: what landed, as one page of HTML that needs nothing but itself.

Spec: docs/land.md#the-report
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from wirebook.cli.output import print_note, print_problems
from wirebook.problems import WirebookError


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that was landed into.")],
    batch: Annotated[
        list[int] | None, typer.Option("--batch", help="Only this batch; all of them otherwise. Repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Where to write it; below FOLDER/_wirebook/reports if not given.")
    ] = None,
) -> None:
    """Write what landed as a page of HTML: rates, reasons, placeholders, fields.

    It holds samples of the messages, and opens without a network.
    """
    from wirebook.landing.report.html import write_report  # noqa: PLC0415 (pyarrow)

    print(write_report(folder, batch, output))


def report_run(folder: Path, before: Collection[int], *, quiet: bool) -> None:
    """The report of a run that has just ended: of all batches but those that were there `before`.

    What landed stays landed: when the page cannot be written that is said, and nothing more.
    """
    from wirebook.landing.report.html import write_report  # noqa: PLC0415
    from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415

    batches = committed_batches(folder) - set(before)
    if not batches:
        return
    try:
        path = write_report(folder, batches)
    except WirebookError as error:
        print_problems(error.problems)
        return
    if quiet:
        print_note(f"report: {path}")
    else:
        print(f"report: {path}")
