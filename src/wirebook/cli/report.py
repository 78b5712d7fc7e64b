"""`wirebook report`: a self-contained HTML page about the messages that landed.

Spec: docs/land.md#the-report
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wirebook.cli.options import TablesArgument
from wirebook.cli.output import print_note, print_problems
from wirebook.problems import WirebookError

if TYPE_CHECKING:
    from wirebook.landing.stores.locations import AnyPath


def report(
    folder: TablesArgument,
    batch: Annotated[
        list[int] | None, typer.Option("--batch", help="Number of a batch. Default: all batches. Repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="File to write. Default: a file in FOLDER/_wirebook/reports.")
    ] = None,
) -> None:
    """Write an HTML report about the messages that landed: rates, reasons, placeholders, fields.

    The report contains samples of the messages. It needs no network.
    """
    from wirebook.landing.report.html import write_report  # noqa: PLC0415 (pyarrow)

    print(write_report(folder, batch, output))


def report_run(folder: AnyPath, before: Collection[int], *, quiet: bool) -> None:
    """Write the report of a run. It covers all batches of the folder except those in `before`.

    If the report cannot be written, the problem is printed, and the run still succeeds.
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
