"""`wirebook demo`: a day of a made-up company's traffic, synthesised and landed, and what can be seen in it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wirebook.cli.land import print_report, print_rows
from wirebook.cli.options import JsonClosingOption
from wirebook.cli.output import print_json, print_note, print_problems, print_table
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.demo.folder import DemoFolder, DemoManifest
    from wirebook.landing.report.show import TableSummary
    from wirebook.landing.runs.report import Report

OK, CANNOT_RUN = 0, 2
SHOWN: Final = (
    "/messagegroups/kestrel.orders/messages/kestrel.orders.placed",
    "/messagegroups/fleet.mqtt/messages/kestrel.fleet.position",
)
ROWS, LOOKED_AT = 2, 500
WHY: Final = 70
"""Characters of a reason that the table shows."""


def demo(
    messages: Annotated[int, typer.Option(help="How many messages to synthesise.", min=1)] = 200_000,
    to: Annotated[Path, typer.Option("--to", help="The folder for it all; made if it is not there.")] = Path(
        "wirebook-demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed makes another day.")] = 1,
    as_json: JsonClosingOption = False,
) -> int:
    """Synthesise a day of a made-up company's traffic and land it: typed tables, and dead letters that say why.

    Nothing is opened, and nothing leaves the folder. Running it again lands nothing twice.
    """
    from wirebook.cli.report import report_run  # noqa: PLC0415
    from wirebook.demo.folder import DemoFolder  # noqa: PLC0415 (half a second)
    from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415

    folder = DemoFolder(to)
    made = folder.check(messages, seed) or _make(folder, messages, seed)
    before = committed_batches(folder.tables)
    report = _land(folder)
    print_problems(report.problems)
    if as_json:
        print_json(report.closing_line())
    else:
        _tell(folder, made, report)
    report_run(folder.tables, before, quiet=as_json)
    return CANNOT_RUN if report.has_errors else OK


def _make(folder: DemoFolder, messages: int, seed: int) -> DemoManifest:
    started = time.monotonic()
    print_note(f"synthesising {counted(messages, 'message')} into '{folder.captures}'")
    made = folder.make(messages, seed)
    kinds = "JSON Lines, compressed JSON Lines and Parquet"
    print_note(f"made {counted(made.messages, 'message')}, {made.broken:,} of them broken on purpose, as {kinds} "
               f"({time.monotonic() - started:.1f} s)")  # fmt: skip
    return made


def _land(folder: DemoFolder) -> Report:
    """What `wirebook land` does, by the same function."""
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415
    from wirebook.spark.job import land  # noqa: PLC0415

    print_note(f"landing them into '{folder.tables}', as 'wirebook land' does")
    with ProgressBar() as bar:
        return land(bar.start_spark, folder.captures, str(folder.catalogue), folder.tables, watch=bar)


# -- what is printed ------------------------------------------------------------------------------------------------


def _tell(folder: DemoFolder, made: DemoManifest, report: Report) -> None:
    from wirebook.landing.report.show import tables_in  # noqa: PLC0415

    tables = tables_in(folder.tables)
    print_report(report, folder.tables)
    if not report.read:
        print(f"Nothing is new: all {made.messages:,} messages had landed before.")
    print()
    for table in tables:
        if table.definition in SHOWN:
            _show_rows(table)
    for table in tables:
        if table.definition is None:
            _show_dead_letters(table, made)
    _suggest(folder, tables)


def _show_rows(table: TableSummary) -> None:
    from wirebook.landing.report.show import first_rows  # noqa: PLC0415

    print_rows(first_rows(table, ROWS), title=f"{table.name}: the first of {table.rows:,} rows")
    print()


def _show_dead_letters(table: TableSummary, made: DemoManifest) -> None:
    """The first dead letter of each outcome and reason."""
    from wirebook.landing.report.show import first_rows  # noqa: PLC0415

    firsts: dict[tuple[str, str], tuple[Any, ...]] = {}
    for letter in first_rows(table, LOOKED_AT).to_pylist():
        reason = _reason(letter)
        row = (f"{letter['_file']}:{letter['_line']}", letter["outcome"], reason["code"], reason["slot"], _why(reason))
        firsts.setdefault((letter["outcome"], reason["code"]), row)
    title = (
        f"{table.name}: one of each kind among the first of {table.rows:,} rows ({made.broken:,} messages were broken)"
    )
    print_table(("message", "outcome", "reason", "where", "why"), firsts.values(), title=title)
    print()


def _reason(letter: dict[str, Any]) -> dict[str, Any]:
    """What is wrong: where nothing fitted, what the nearest definition missed."""
    near = letter["near"][0]["problems"] if letter["near"] else []
    return next(iter([*near, *letter["problems"]]), {"code": "", "slot": None})


def _why(reason: dict[str, Any]) -> str:
    """What was expected, and what was found, in one line that may be cut."""
    from wirebook.landing.report.reasons import expected_in_words, found_in_words  # noqa: PLC0415

    code, parts = reason["code"], []
    if reason.get("expected") is not None:
        parts.append(f"expected {expected_in_words(code, reason['expected'])}")
    if reason.get("actual") is not None:
        parts.append(f"got {found_in_words(code, reason['actual'])}")
    text = "; ".join(parts)
    return text if len(text) <= WHY else f"{text[: WHY - 1]}…"


def _suggest(folder: DemoFolder, tables: list[TableSummary]) -> None:
    placed = next((table.name for table in tables if table.definition == SHOWN[0]), "dead_letters")
    wirebook, root = _command(), folder.root
    letters = f'pq.read_table("{folder.tables}/dead_letters", columns=["protocol", "outcome"])'
    print("Try next:")
    for arguments in (
        ["show", folder.tables, placed, "--rows", "5"],
        ["show", folder.tables, "dead_letters"],
        ["lint", folder.catalogue],
        ["match", folder.captures / "http-webhooks.jsonl", "--catalog", folder.catalogue],
        ["land", folder.captures, "--catalog", folder.catalogue, "--to", folder.tables],
    ):
        print(f"  {shlex.join([wirebook, *map(str, arguments)])}")
    python = _near(Path(sys.executable))
    query = f"import pyarrow.parquet as pq; print({letters}.to_pandas().value_counts())"
    print(f"  {shlex.join([python, '-c', query])}")
    print(f"The tables are in '{folder.tables}'; all of it can be removed with: {shlex.join(['rm', '-r', str(root)])}")


def _command() -> str:
    """What to type for this program, here."""
    if shutil.which("wirebook"):
        return "wirebook"
    return _near(Path(sys.argv[0])) if os.path.basename(sys.argv[0]) == "wirebook" else "wirebook"


def _near(path: Path) -> str:
    """A path from the current folder, where it is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
