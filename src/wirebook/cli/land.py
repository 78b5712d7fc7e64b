"""`wirebook land`: write captured messages to typed tables. `wirebook show`: print the tables.

Spec: docs/land.md#the-target-folder; docs/decisions/0010
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from wirebook.cli.exit_codes import CANNOT_RUN, OK
from wirebook.cli.memory import keep_memory_flat
from wirebook.cli.options import (
    STANDARD_INPUT,
    BatchProgressOption,
    CatalogOption,
    ConfluentOption,
    DryRunOption,
    EndpointOption,
    JsonClosingOption,
    MetricsOption,
    ProgressFormat,
    TablesArgument,
    TableSettingsOption,
    TargetOption,
    address_of,
)
from wirebook.cli.output import (
    print_event,
    print_json,
    print_note,
    print_problems,
    print_table,
    printable,
)
from wirebook.cli.run_output import INCOMPLETE_CODES, print_note_as, print_problems_as, print_report
from wirebook.cli.serve import seconds_of
from wirebook.cli.sources import capture_path, check_standard_input, load_catalog_to_land, load_catalogue_for_run
from wirebook.core.collector import collect_seldom
from wirebook.core.counting import counted
from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    import pyarrow as pa

    from wirebook.landing.report.show import TableSummary
    from wirebook.landing.runs.settings import CommittedBatch

MAX_CELL = 48
"""Maximum characters of a value in a printed table. XIDs are never shortened."""
XID = re.compile(r"(/[^/\s]+/[^/\s]+){1,3}")
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Table format: parquet (default), delta or iceberg.")
]
IcebergCatalogOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Iceberg catalogue in PyIceberg's configuration. Default: that of the target, or a file in a new one.",
    ),
]
IcebergNamespaceOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Namespace in that catalogue, with dots between its levels. Default: wirebook."),
]
StageOption = Annotated[
    int | None,
    typer.Option(
        help="Write definitions with fewer than N rows per task to the shared table `staged`. Default: 100 if a task "
        "would write more than 1,000 such files, else 0 (off).",
        min=0,
        metavar="N",
    ),
]
DeduplicateOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Land an event once if it is received again within this time, such as 24h; repeats go to the table "
        "`repeated`. Default: land every message.",
    ),
]
LocalOption = Annotated[bool, typer.Option("--local", help="Run in processes of this machine, without Spark.")]
ReportOption = Annotated[
    bool, typer.Option("--report/--no-report", help="Write an HTML report about the run to _wirebook/reports.")
]


def land(  # noqa: PLR0917 (options)
    source: Annotated[
        str,
        typer.Argument(
            help="A file of captured messages or CloudEvents, a folder of such files, or - for standard input."
        ),
    ],
    catalog: CatalogOption,
    to: TargetOption,
    endpoint: EndpointOption = None,
    dry_run: DryRunOption = False,
    table_format: FormatOption = None,
    iceberg_catalog: IcebergCatalogOption = None,
    iceberg_namespace: IcebergNamespaceOption = None,
    stage_below: StageOption = None,
    tables: TableSettingsOption = None,
    deduplicate: DeduplicateOption = None,
    batch_size: Annotated[int, typer.Option(help="MiB of input that are committed together.", min=1)] = 1024,
    confluent: ConfluentOption = False,
    local: LocalOption = False,
    with_report: ReportOption = True,
    follow: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Keep running, and look for new messages this often, such as 10s. Writes no report."
        ),
    ] = None,
    metrics_address: MetricsOption = None,
    progress: BatchProgressOption = ProgressFormat.TEXT,
    as_json: JsonClosingOption = False,
) -> int:
    """Land captured messages: one typed table per definition, and dead letters with their reasons.

    Messages that have landed are skipped, so a run that was killed can be repeated. With `--follow`, Ctrl-C and SIGTERM
    finish the current batch, and the catalogue is read again when it changes.

    Exit codes: 0 done or stopped by SIGTERM, 2 the messages or the catalogue cannot be read, a file cannot be read to
    its end or has changed (all else has landed), or the tables cannot be written, 130 stopped by Ctrl-C.
    """
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415

    check_standard_input(source=source, catalog=catalog)
    settings: dict[str, Any] = {"table_format": table_format, "dry_run": dry_run, "batch_bytes": batch_size << 20}
    settings |= {"stage_below": stage_below, "tables": tables, "endpoint": endpoint}
    settings["deduplicate"] = window_of(deduplicate)
    settings |= {"iceberg_catalog": iceberg_catalog, "iceberg_namespace": iceberg_namespace}
    if follow is not None:
        if dry_run or STANDARD_INPUT in (source, *catalog):
            raise typer.BadParameter("it cannot be used with --dry-run or standard input", param_hint="--follow")
        keep_memory_flat()
        from wirebook.cli.follow import follow_source  # noqa: PLC0415

        check_format(table_format)
        return follow_source(
            source,
            load_catalog_to_land(catalog, confluent=confluent),
            catalog,
            to,
            interval=seconds_of("--follow", follow),
            local=local,
            metrics_address=address_of("--metrics-address", metrics_address),
            progress=progress,
            as_json=as_json,
            settings=settings,
        )
    if metrics_address is not None:
        raise typer.BadParameter("it requires --follow", param_hint="--metrics-address")
    is_text = progress is ProgressFormat.TEXT
    collect_seldom()
    with ProgressBar("loading the catalogue", quiet=not is_text) as bar, capture_path(source) as path:
        from wirebook.cli.report import report_run  # noqa: PLC0415 (half a second for all of these)
        from wirebook.landing.job import land as land_job  # noqa: PLC0415
        from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415
        from wirebook.landing.stores.locations import location_of  # noqa: PLC0415
        from wirebook.landing.watch.figures import RecentBatches, figures_of  # noqa: PLC0415
        from wirebook.landing.watch.lineage import RunLineage, file_source  # noqa: PLC0415

        recent = RecentBatches()

        def show(batch: CommittedBatch) -> None:
            lineage.add(batch.report)
            if progress is ProgressFormat.JSON:
                print_event(recent.add(figures_of(batch)).to_dict())

        check_format(table_format)
        loaded = load_catalogue_for_run(catalog, confluent=confluent, endpoint=endpoint)
        before = committed_batches(to)
        bar.begin_step("reading the list of source files")
        runner = bar.runner(local=local)
        job = f"land.{location_of(to).absolute().name}"
        lineage = RunLineage(job, [file_source(path)], to, lambda text: print_note_as(progress, text))
        with nullcontext() if dry_run else lineage:
            report = land_job(path, loaded, to, runner=runner, progress=bar, on_batch=show, **settings)
    print_problems_as(progress, report.problems if source != STANDARD_INPUT else map(_of_input, report.problems))
    if as_json:
        print_json(report.closing_line())
    else:
        print_report(report, to)
    if with_report and not dry_run:
        report_run(to, before, quiet=as_json)
    return CANNOT_RUN if report.has_errors else OK


def _of_input(problem: Problem) -> Problem:
    """Replace the hint of a problem of standard input: the complete input has another name, so it would land again."""
    if problem.code not in INCOMPLETE_CODES:
        return problem
    return msgspec.structs.replace(
        problem, hint="land the complete input into another folder; here, all of it would land once more"
    )


def window_of(deduplicate: str | None) -> timedelta | None:
    """Parse the value of --deduplicate. Raises: bad-setting"""
    return None if deduplicate is None else timedelta(seconds=seconds_of("--deduplicate", deduplicate))


def check_format(table_format: str | None) -> None:
    """Check the value of --format. Raises: typer.BadParameter"""
    from wirebook.landing.tables.all_formats import FORMATS  # noqa: PLC0415

    if table_format is not None and table_format not in FORMATS:
        raise typer.BadParameter(f"'{table_format}' is not one of {', '.join(FORMATS)}", param_hint="--format")


def show(
    folder: TablesArgument,
    table: Annotated[str | None, typer.Argument(help="Name of a table. Default: list all tables.")] = None,
    rows: Annotated[int, typer.Option(help="Number of rows to show.", min=0)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> int:
    """Show the tables of a folder, or the columns and first rows of one table.

    If a table cannot be read, the others are still listed, and the exit code is 2.
    """
    from wirebook.landing.report.show import find_table, first_rows, tables_in  # noqa: PLC0415
    from wirebook.landing.tables.layout import OWN_TABLES  # noqa: PLC0415

    if table is None:
        return _print_tables(folder, tables_in(folder), as_json=as_json)
    summary = find_table(tables_in(folder, with_staging=True), table)
    first = first_rows(summary, rows)
    if as_json:
        columns = {column.name: str(column.type) for column in first.schema}
        row_values = [{name: _plain(value) for name, value in row.items()} for row in first.to_pylist()]
        head = {"table": summary.name, "definition": summary.definition, "rows": summary.rows}
        print_json(head | {"columns": columns, "first": row_values})
    else:
        own = OWN_TABLES.get(summary.name)
        content = summary.definition or (own.contents if own else "no definition")
        print_rows(first, title=f"{summary.name}: {counted(summary.rows, 'row')} of {content}")
    return OK


def _print_tables(folder: str, listed: Sequence[TableSummary], *, as_json: bool) -> int:
    """Print the list of tables, with a column for staged rows if there are any. Print the problems of tables that
    cannot be read."""
    tables, problems = [], list[Problem]()
    for table in listed:
        try:
            table.check_rows()
        except WirebookError as error:
            problems += [problem for problem in error.problems if problem not in problems]
        else:
            tables.append(table)
    has_staged = any(table.staged for table in tables)
    if as_json:
        summaries = {table.name: {"definition": table.definition, "rows": table.rows} for table in tables}
        for table in tables:
            if table.staged:
                summaries[table.name]["staged"] = table.staged
        print_json({"tables": summaries, "problems": [problem.to_dict() for problem in problems]})
    else:
        rows = [(table.name, table.definition, table.rows, table.staged)[: 3 + has_staged] for table in tables]
        print_table(("table", "definition", "rows", "staged")[: 3 + has_staged], rows)
        print_note(f"To show the first rows of a table: wirebook show {folder} TABLE")
    print_problems(problems)
    return CANNOT_RUN if problems else OK


def print_rows(rows: pa.Table, *, title: str | None = None) -> None:
    """Print rows side by side, with a line per column, because tables are wide."""
    heads = [f"row {number}" for number in range(1, rows.num_rows + 1)]
    lines = [(column.name, _cell(column.type), *map(_cell, rows[column.name].to_pylist())) for column in rows.schema]
    print_table(("column", "type", *heads), lines, title=title)


def _cell(value: Any) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return ""
    text = printable(value.decode(errors="backslashreplace") if isinstance(value, bytes) else _text(value))
    return text if len(text) <= MAX_CELL or XID.fullmatch(text) else text[: MAX_CELL - 1] + "…"


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(_plain(value), ensure_ascii=False, default=_text)
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _plain(value: Any) -> Any:
    """Return a value as JSON: bytes as text if they are UTF-8, else as base64."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else _text(value)
