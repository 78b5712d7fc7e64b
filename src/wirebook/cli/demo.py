"""`wirebook demo`: generate a day of messages of a fictional company, land them, and print examples of the result."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wirebook.cli.exit_codes import CANNOT_RUN, OK
from wirebook.cli.land import print_rows
from wirebook.cli.options import JsonClosingOption
from wirebook.cli.output import print_json, print_note, print_problems, print_table
from wirebook.cli.run_output import print_report
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.demo.folder import DemoFolder, DemoManifest
    from wirebook.landing.report.show import TableSummary
    from wirebook.landing.runs.report import Report

PRINTED_DEFINITIONS: Final = (
    "/messagegroups/kestrel.orders/messages/kestrel.orders.placed",
    "/messagegroups/fleet.mqtt/messages/kestrel.fleet.position",
)
ROWS, MAX_DEAD_LETTERS = 2, 500
"""Rows printed per table, and dead letters searched for examples."""
MAX_REASON: Final = 70
"""Maximum characters of a reason in the table of dead letters."""


def demo(
    messages: Annotated[int, typer.Option(help="Number of messages to generate.", min=1)] = 200_000,
    to: Annotated[Path, typer.Option("--to", help="Folder for the messages and tables; created if missing.")] = Path(
        "wirebook-demo"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 1,
    as_json: JsonClosingOption = False,
) -> int:
    """Generate a day of messages of a fictional company, and land them as typed tables and dead letters.

    The demo needs no network and writes only to its folder. Messages that have landed are skipped in later runs.
    """
    from wirebook.cli.report import report_run  # noqa: PLC0415
    from wirebook.demo.folder import DemoFolder  # noqa: PLC0415 (half a second)
    from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415

    folder = DemoFolder(to)
    manifest = folder.check(messages, seed) or _generate(folder, messages, seed)
    before = committed_batches(folder.tables)
    report = _land(folder)
    print_problems(report.problems)
    if as_json:
        print_json(report.closing_line())
    else:
        _print_result(folder, manifest, report)
    report_run(folder.tables, before, quiet=as_json)
    return CANNOT_RUN if report.has_errors else OK


def _generate(folder: DemoFolder, messages: int, seed: int) -> DemoManifest:
    started = time.monotonic()
    print_note(f"generating {counted(messages, 'message')} in '{folder.captures}'")
    manifest = folder.make(messages, seed)
    file_types = "JSON Lines, compressed JSON Lines and Parquet"
    print_note(f"generated {counted(manifest.messages, 'message')}, {manifest.broken:,} of them faulty, as {file_types}"
               f" ({time.monotonic() - started:.1f} s)")  # fmt: skip
    return manifest


def _land(folder: DemoFolder) -> Report:
    """Land the messages with the function of `wirebook land`."""
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415
    from wirebook.spark.job import land  # noqa: PLC0415

    print_note(f"landing them in '{folder.tables}'")
    with ProgressBar() as bar:
        return land(bar.start_spark, folder.captures, str(folder.catalogue), folder.tables, progress=bar)


# -- output ----------------------------------------------------------------------------------------------------


def _print_result(folder: DemoFolder, manifest: DemoManifest, report: Report) -> None:
    from wirebook.landing.report.show import first_rows, tables_in  # noqa: PLC0415

    tables = tables_in(folder.tables)
    print_report(report, folder.tables)
    if not report.read:
        print(f"Nothing new: all {manifest.messages:,} messages have landed before.")
    print()
    for table in tables:
        if table.definition in PRINTED_DEFINITIONS:
            print_rows(first_rows(table, ROWS), title=f"{table.name}: first of {table.rows:,} rows")
            print()
    for table in tables:
        if table.definition is None:
            _print_dead_letters(table, manifest)
    _suggest(folder, tables)


def _print_dead_letters(table: TableSummary, manifest: DemoManifest) -> None:
    """Print the first dead letter of each outcome and reason."""
    from wirebook.landing.report.show import first_rows  # noqa: PLC0415

    firsts: dict[tuple[str, str], tuple[Any, ...]] = {}
    for dead_letter in first_rows(table, MAX_DEAD_LETTERS).to_pylist():
        reason = _reason(dead_letter)
        row = (
            f"{dead_letter['_file']}:{dead_letter['_line']}",
            dead_letter["outcome"],
            reason["code"],
            reason["slot"],
            _details(reason),
        )
        firsts.setdefault((dead_letter["outcome"], reason["code"]), row)
    title = f"{table.name}: one example per reason, of {table.rows:,} rows ({manifest.broken:,} messages are faulty)"
    print_table(("message", "outcome", "reason", "slot", "details"), firsts.values(), title=title)
    print()


def _reason(dead_letter: dict[str, Any]) -> dict[str, Any]:
    """Return the first problem of a dead letter: of the closest definition if none matched, else of the message."""
    near = dead_letter["near"][0]["problems"] if dead_letter["near"] else []
    return next(iter([*near, *dead_letter["problems"]]), {"code": "", "slot": None})


def _details(reason: dict[str, Any]) -> str:
    """Return the expected and the actual value in one line, shortened if necessary."""
    from wirebook.landing.report.reasons import format_actual, format_expected  # noqa: PLC0415

    code, parts = reason["code"], []
    if reason.get("expected") is not None:
        parts.append(f"expected {format_expected(code, reason['expected'])}")
    if reason.get("actual") is not None:
        parts.append(f"got {format_actual(code, reason['actual'])}")
    text = "; ".join(parts)
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"


def _suggest(folder: DemoFolder, tables: list[TableSummary]) -> None:
    orders = next((table.name for table in tables if table.definition == PRINTED_DEFINITIONS[0]), "dead_letters")
    wirebook, root = _command(), folder.root
    table = f'pq.read_table("{folder.tables}/dead_letters", columns=["protocol", "outcome"])'
    print("Try next:")
    for arguments in (
        ["show", folder.tables, orders, "--rows", "5"],
        ["show", folder.tables, "dead_letters"],
        ["lint", folder.catalogue],
        ["match", folder.captures / "http-webhooks.jsonl", "--catalog", folder.catalogue],
        ["land", folder.captures, "--catalog", folder.catalogue, "--to", folder.tables],
    ):
        print(f"  {shlex.join([wirebook, *map(str, arguments)])}")
    python = _relative(Path(sys.executable))
    query = f"import pyarrow.parquet as pq; print({table}.to_pandas().value_counts())"
    print(f"  {shlex.join([python, '-c', query])}")
    print(f"The tables are in '{folder.tables}'. To remove all files: {shlex.join(['rm', '-r', str(root)])}")


def _command() -> str:
    """Return the command that runs this program in the current folder."""
    if shutil.which("wirebook"):
        return "wirebook"
    return _relative(Path(sys.argv[0])) if os.path.basename(sys.argv[0]) == "wirebook" else "wirebook"


def _relative(path: Path) -> str:
    """Return a path relative to the current folder if it is inside it, else unchanged."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
