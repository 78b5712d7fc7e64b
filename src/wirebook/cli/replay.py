"""`wirebook replay`: dead letters land after the catalogue was corrected.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.land import OK, ReportOption, StageOption, print_reasons, print_staged
from wirebook.cli.options import CatalogOption, DryRunOption, JsonClosingOption
from wirebook.cli.output import print_json, print_problems, print_table
from wirebook.cli.sources import load_catalog_to_land
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.landing.runs.report import Report

CodeOption = Annotated[
    list[str] | None, typer.Option("--code", help="Only dead letters with this problem. Repeatable.")
]
DefinitionOption = Annotated[
    list[str] | None, typer.Option("--definition", help="Only dead letters of, or near, this XID. Repeatable.")
]
OtherEndpointOption = Annotated[
    str | None, typer.Option(help="XID of the endpoint that they came through, if not the one landing was told.")
]
AlsoConfluentOption = Annotated[
    bool, typer.Option("--confluent", help="Take Confluent's prefix off Kafka values, also where landing did not.")
]


def replay(  # noqa: PLR0917 (options)
    folder: Annotated[Path, typer.Argument(help="A folder that was landed into.")],
    catalog: CatalogOption,
    code: CodeOption = None,
    definition: DefinitionOption = None,
    endpoint: OtherEndpointOption = None,
    stage_below: StageOption = None,
    dry_run: DryRunOption = False,
    confluent: AlsoConfluentOption = False,
    with_report: ReportOption = True,
    as_json: JsonClosingOption = False,
) -> int:
    """Land dead letters that fit a corrected catalogue, each once, and mark them as resolved.

    Running it again adds nothing. What still does not land stays as it is.
    """
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415

    settings: dict[str, Any] = {"codes": code or (), "definitions": definition or (), "endpoint": endpoint}
    settings |= {"stage_below": stage_below}
    with ProgressBar("loading the catalog") as bar:
        from wirebook.cli.report import report_run  # noqa: PLC0415 (half a second, all of these)
        from wirebook.landing.report.run_statistics import committed_batches  # noqa: PLC0415
        from wirebook.spark.job import replay as replay_job  # noqa: PLC0415

        loaded = load_catalog_to_land(catalog, confluent=confluent)
        before = committed_batches(folder)
        bar.say("looking at the dead letters")
        report = replay_job(bar.start_spark, folder, loaded, dry_run=dry_run, watch=bar, **settings)
    print_problems(report.problems)
    if as_json:
        print_json(report.closing_line())
    else:
        _print_report(report)
    if with_report and not dry_run:
        report_run(folder, before, quiet=as_json)
    return OK


def _print_report(report: Report) -> None:
    """Where the dead letters went, and why those that did not land did not."""
    tables = [(name, table["definition"], table["rows"]) for name, table in report.tables().items()]
    if tables:
        print_table(("table", "definition", "rows"), tables)
    print_reasons(report, "dead letters")
    verb = "would land" if report.dry_run else "landed"
    tried = counted(report.read, "dead letter")
    print(f"tried {tried} = {verb} {report.landed:,} + still dead {report.dead_lettered:,}", end="")
    print(f"; others: {report.skipped:,}; {report.seconds:.1f} s")
    print_staged(report)
