"""`wirebook land`: captured messages become typed tables. `wirebook show`: what is in them.

Spec: docs/land.md#the-target-folder; docs/decisions/0010
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.options import CatalogOption, ConfluentOption, DryRunOption, EndpointOption, JsonClosingOption
from wirebook.cli.output import print_json, print_note, print_problems, print_table, printable
from wirebook.cli.sources import capture_path, check_standard_input, load_catalog_to_land
from wirebook.core.counting import counted
from wirebook.problems import CODES

if TYPE_CHECKING:
    import pyarrow as pa

    from wirebook.landing.report.show import TableSummary
    from wirebook.landing.runs.report import Report

OK, CANNOT_RUN = 0, 2
TOP_REASONS = 10
OTHERS = {"resolved": "dead letters that have landed since", "staged": "definitions without files of their own"}
CELL = 48
"""Characters of a value that a table shows. XIDs are never cut."""
XID = re.compile(r"(/[^/\s]+/[^/\s]+){1,3}")
FormatOption = Annotated[
    str | None, typer.Option("--format", help="The format of the tables: parquet (unless said), delta or iceberg.")
]
StageOption = Annotated[
    int | None,
    typer.Option(
        help="Definitions with fewer rows share the table 'staged' (0: none; unless said: 100, if they are many).",
        min=0,
    ),
]
ReportOption = Annotated[
    bool, typer.Option("--report/--no-report", help="Write a page of HTML about the run below _wirebook/reports.")
]


def land(  # noqa: PLR0917 (options)
    source: Annotated[
        str,
        typer.Argument(
            help="A file of captured messages or CloudEvents, a folder of such files, or - for standard input."
        ),
    ],
    catalog: CatalogOption,
    to: Annotated[Path, typer.Option("--to", help="The folder of the tables; made if it is not there.")],
    endpoint: EndpointOption = None,
    dry_run: DryRunOption = False,
    form: FormatOption = None,
    stage_below: StageOption = None,
    batch_size: Annotated[int, typer.Option(help="MiB that land together, all or nothing.", min=1)] = 1024,
    confluent: ConfluentOption = False,
    with_report: ReportOption = True,
    as_json: JsonClosingOption = False,
) -> int:
    """Land captured messages: one typed table per definition, and dead letters that say why.

    Running it again lands only what is new. A run that was killed goes on where it was.
    """
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415

    check_standard_input(source=source, catalog=catalog)
    settings: dict[str, Any] = {"form": form, "dry_run": dry_run, "batch_bytes": batch_size << 20}
    settings |= {"stage_below": stage_below}
    with ProgressBar("loading the catalog") as bar, capture_path(source) as path:
        from wirebook.cli.report import report_run  # noqa: PLC0415 (half a second, all of these)
        from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415
        from wirebook.spark.job import land as land_job  # noqa: PLC0415

        _check_format(form)
        loaded = load_catalog_to_land(catalog, confluent=confluent)
        before = committed_batches(to)
        bar.say("looking at the source")
        report = land_job(bar.start_spark, path, loaded, to, endpoint=endpoint, watch=bar, **settings)
    print_problems(report.problems)
    if as_json:
        print_json(report.closing_line())
    else:
        print_report(report, to)
    if with_report and not dry_run:
        report_run(to, before, quiet=as_json)
    return CANNOT_RUN if report.has_errors else OK


def _check_format(form: str | None) -> None:
    from wirebook.landing.tables.names import FORMATS  # noqa: PLC0415

    if form is not None and form not in FORMATS:
        raise typer.BadParameter(f"'{form}' is none of: {', '.join(FORMATS)}", param_hint="--format")


def print_report(report: Report, to: Path) -> None:
    """The closing tables: where the messages went, what they were, and why those that did not land did not."""
    tables = [(name, table["definition"], table["rows"]) for name, table in report.tables().items()]
    dead = [("dead_letters", "", report.dead_lettered)] if report.dead_lettered else []
    if tables or dead:
        print_table(("table", "definition", "rows"), [*tables, *dead])
        print_table(("outcome", "messages"), report.outcomes.most_common())
    print_reasons(report, "messages")
    verb = "would land" if report.dry_run else "landed"
    print(f"read {report.read:,} = {verb} {report.landed:,} + dead-lettered {report.dead_lettered:,}", end="")
    print(f"; there before: {report.skipped:,}; empty batches: {report.empty:,}; {report.seconds:.1f} s")
    print_staged(report)
    if report.landed and not report.dry_run:
        print(f"see: wirebook show {to}")


def print_reasons(report: Report, counted_as: str) -> None:
    """The most frequent codes of dead letters, each with the rule that is broken."""
    rows = [(code, count, CODES[code].title) for code, count in report.reasons.most_common(TOP_REASONS)]
    if rows:
        print_table(("reason", counted_as, "meaning"), rows)


def print_staged(report: Report) -> None:
    """How many rows have no files of their own yet."""
    if report.staged:
        rows, tables = counted(report.staged.total(), "row"), counted(len(report.staged), "table")
        print(f"staged: {rows} of {tables}, see 'wirebook views'")


def show(
    folder: Annotated[Path, typer.Argument(help="A folder that was landed into.")],
    table: Annotated[str | None, typer.Argument(help="One table; all of them are listed otherwise.")] = None,
    rows: Annotated[int, typer.Option(help="How many rows of the table to show.", min=0)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, and nothing else.")] = False,
) -> None:
    """Show the tables of a target folder, or one table's columns and first rows."""
    from wirebook.landing.report.show import find_table, first_rows, tables_in  # noqa: PLC0415

    if table is None:
        _show_tables(folder, tables_in(folder), as_json=as_json)
        return
    found = find_table(tables_in(folder, with_staging=True), table)
    first = first_rows(found, rows)
    if as_json:
        columns = {column.name: str(column.type) for column in first.schema}
        shown = [{name: _plain(value) for name, value in row.items()} for row in first.to_pylist()]
        head = {"table": found.name, "definition": found.definition, "rows": found.rows}
        print_json(head | {"columns": columns, "first": shown})
    else:
        of = found.definition or OTHERS.get(found.name, "messages that did not land")
        print_rows(first, title=f"{found.name}: {counted(found.rows, 'row')} of {of}")


def _show_tables(folder: Path, tables: Sequence[TableSummary], *, as_json: bool) -> None:
    """The list of the tables; with how many rows are staged, if any are."""
    some = any(table.staged for table in tables)
    if as_json:
        print_json({"tables": {table.name: _summary(table) for table in tables}})
        return
    rows = [(table.name, table.definition, table.rows, table.staged)[: 3 + some] for table in tables]
    print_table(("table", "definition", "rows", "staged")[: 3 + some], rows)
    print_note(f"first rows of one: wirebook show {folder} TABLE")


def _summary(table: TableSummary) -> dict[str, Any]:
    staged = {"staged": table.staged} if table.staged else {}
    return {"definition": table.definition, "rows": table.rows} | staged


def print_rows(rows: pa.Table, *, title: str | None = None) -> None:
    """Rows side by side, a line for each column: tables are wide."""
    heads = [f"row {number}" for number in range(1, rows.num_rows + 1)]
    lines = [(column.name, _cell(column.type), *map(_cell, rows[column.name].to_pylist())) for column in rows.schema]
    print_table(("column", "type", *heads), lines, title=title)


def _cell(value: Any) -> str:
    """A value in a few characters."""
    if value is None:
        return ""
    text = printable(value.decode(errors="backslashreplace") if isinstance(value, bytes) else _text(value))
    return text if len(text) <= CELL or XID.fullmatch(text) else text[: CELL - 1] + "…"


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(_plain(value), ensure_ascii=False, default=_text)
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _plain(value: Any) -> Any:
    """A value as JSON: bytes as text, or as base64 when they are no text."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else _text(value)
