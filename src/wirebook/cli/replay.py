"""`wirebook replay`: dead letters land after the catalogue was corrected.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wirebook.cli.land import OK, TOP_REASONS, note_diagnostics
from wirebook.cli.output import print_json, print_problems, print_table

if TYPE_CHECKING:
    from wirebook.spark.report import Report


def replay(  # noqa: PLR0917 (options)
    folder: Annotated[Path, typer.Argument(help="A folder that was landed into.")],
    catalog: Annotated[
        list[str], typer.Option("--catalog", "-c", help="The corrected catalogue: file, folder or URL. Repeatable.")
    ],
    code: Annotated[
        list[str] | None, typer.Option("--code", help="Only dead letters with this problem. Repeatable.")
    ] = None,
    definition: Annotated[
        list[str] | None, typer.Option("--definition", help="Only dead letters of, or near, this XID. Repeatable.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help="XID of the endpoint that they came through, if not the one landing was told.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only, write nothing.")] = False,
    confluent: Annotated[
        bool, typer.Option("--confluent", help="Take Confluent's prefix off Kafka values, also where landing did not.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object, and print nothing else.")] = False,
) -> int:
    """Land dead letters that fit a corrected catalogue, each once, and mark them as resolved.

    Running it again adds nothing. What still does not land stays as it is.
    """
    from wirebook.catalog import Catalog  # noqa: PLC0415 (half a second, all of these)
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415
    from wirebook.message.matcher import MatchOptions  # noqa: PLC0415
    from wirebook.spark.job import replay as replay_job  # noqa: PLC0415
    from wirebook.spark.session import session  # noqa: PLC0415

    loaded = Catalog.load(*catalog, options=MatchOptions(confluent_prefix=confluent))
    note_diagnostics(loaded)
    with ProgressBar() as bar:

        def start() -> Any:
            bar.say("starting Spark")
            return session()

        settings: dict[str, Any] = {"codes": code or (), "definitions": definition or (), "endpoint": endpoint}
        report = replay_job(start, folder, loaded, dry_run=dry_run, watch=bar, **settings)
    print_problems(report.problems)
    if as_json:
        print_json(report.closing_line())
    else:
        _print_report(report)
    return OK


def _print_report(report: Report) -> None:
    """Where the dead letters went, and why those that did not land did not."""
    tables = [(name, table["definition"], table["rows"]) for name, table in report.tables().items()]
    if tables:
        print_table(("table", "definition", "rows"), tables)
    if report.reasons:
        print_table(("reason", "dead letters"), report.reasons.most_common(TOP_REASONS))
    verb = "would land" if report.dry_run else "landed"
    print(
        f"tried {report.read:,} dead letters = {verb} {report.landed:,} + still dead {report.dead_lettered:,}", end=""
    )
    print(f"; others: {report.skipped:,}; {report.seconds:.1f} s")
