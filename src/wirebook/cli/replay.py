"""`wirebook replay`: land dead letters with a corrected catalogue.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.exit_codes import CANNOT_RUN, OK
from wirebook.cli.land import LocalOption, ReportOption, StageOption
from wirebook.cli.options import CatalogOption, DryRunOption, JsonClosingOption, TablesArgument, TableSettingsOption
from wirebook.cli.output import print_json, print_note, print_problems, print_table
from wirebook.cli.run_output import print_reasons, print_staged
from wirebook.cli.sources import load_catalogue_for_run
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.landing.runs.report import Report

CodeOption = Annotated[
    list[str] | None, typer.Option("--code", help="Replay only dead letters with this problem code. Repeatable.")
]
DefinitionOption = Annotated[
    list[str] | None,
    typer.Option("--definition", help="Replay only dead letters whose (closest) definition has this XID. Repeatable."),
]
OtherEndpointOption = Annotated[
    str | None, typer.Option(help="XID of the endpoint of the dead letters. Default: that of the landing.")
]
AlsoConfluentOption = Annotated[
    bool, typer.Option("--confluent", help="Remove Confluent's prefix from Kafka values, even if the landing did not.")
]


def replay(  # noqa: PLR0917 (options)
    folder: TablesArgument,
    catalog: CatalogOption,
    code: CodeOption = None,
    definition: DefinitionOption = None,
    endpoint: OtherEndpointOption = None,
    stage_below: StageOption = None,
    tables: TableSettingsOption = None,
    dry_run: DryRunOption = False,
    confluent: AlsoConfluentOption = False,
    local: LocalOption = False,
    with_report: ReportOption = True,
    as_json: JsonClosingOption = False,
) -> int:
    """Land dead letters that match a corrected catalogue, each once, and mark them as resolved.

    Dead letters that still do not match are unchanged. Repeating the command lands nothing twice.
    """
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415

    settings: dict[str, Any] = {"codes": code or (), "definitions": definition or (), "endpoint": endpoint}
    settings |= {"stage_below": stage_below, "tables": tables}
    with ProgressBar("loading the catalogue") as bar:
        from wirebook.cli.report import report_run  # noqa: PLC0415 (half a second for all of these)
        from wirebook.landing.job import replay as replay_job  # noqa: PLC0415
        from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415
        from wirebook.landing.stores.locations import location_of  # noqa: PLC0415
        from wirebook.landing.tables.layout import DEAD_LETTERS  # noqa: PLC0415
        from wirebook.landing.watch.lineage import RunLineage, file_source  # noqa: PLC0415

        loaded = load_catalogue_for_run(catalog, confluent=confluent, endpoint=endpoint)
        before = committed_batches(folder)
        bar.begin_step("reading the dead letters")
        runner = bar.runner(local=local)
        target = location_of(folder).absolute()
        lineage = RunLineage(f"replay.{target.name}", [file_source(target / DEAD_LETTERS)], folder, print_note)
        settings |= {"dry_run": dry_run, "progress": bar, "on_batch": lambda batch: lineage.add(batch.report)}
        with nullcontext() if dry_run else lineage:
            report = replay_job(folder, loaded, runner=runner, **settings)
    print_problems(report.problems)
    if as_json:
        print_json(report.closing_line())
    else:
        _print_report(report)
    if with_report and not dry_run:
        report_run(folder, before, quiet=as_json)
    return CANNOT_RUN if report.has_errors else OK


def _print_report(report: Report) -> None:
    """Print the rows that landed per table, and the reasons of the remaining dead letters."""
    tables = [(name, table["definition"], table["rows"]) for name, table in report.tables().items()]
    if tables:
        print_table(("table", "definition", "rows"), tables)
    print_reasons(report, "dead letters")
    verb = "would land" if report.dry_run else "landed"
    read = counted(report.read, "dead letter")
    print(f"read {read} = {verb} {report.landed:,} + unchanged {report.dead_lettered:,}", end="")
    print(f"; not selected: {report.skipped:,}; {report.seconds:.1f} s")
    print_staged(report)
