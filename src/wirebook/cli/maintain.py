"""`wirebook maintain`: upkeep of tables.

Spec: docs/how-to/maintain.md
"""

from __future__ import annotations

from typing import Annotated

import typer

from wirebook.cli.exit_codes import CANNOT_RUN, OK
from wirebook.cli.options import TablesArgument
from wirebook.cli.output import print_json, print_problems, print_table

FIGURES = ("files", "compacted", "deleted", "expired")


def maintain(  # noqa: PLR0917 (options)
    folder: TablesArgument,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Name of a table, or XID of its definition. Repeatable.")
    ] = None,
    retain: Annotated[
        int, typer.Option(help="Hours to keep files and versions that are no longer current.", min=1)
    ] = 168,
    target_size: Annotated[int, typer.Option(help="MiB of a file after compaction.", min=1)] = 128,
    compact: Annotated[bool, typer.Option("--compact/--no-compact", help="Replace small files by larger ones.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would be done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> int:
    """Compact the tables of a folder, and delete files and versions that no reader needs.

    Delta Lake: compaction, a checkpoint of the log, and deletion of files, including those of killed runs. Iceberg:
    compaction, expiry of snapshots, and deletion of files. Plain Parquet: nothing. Landing can continue during
    maintenance. If a table cannot be maintained, the others still are, and the exit code is 2.
    """
    from wirebook.landing.maintenance import UpkeepOptions, maintain  # noqa: PLC0415

    options = UpkeepOptions(retain, target_size << 20, compact, dry_run)
    done = list(maintain(folder, options, table or ()))
    problems = [upkeep.problem for upkeep in done if upkeep.problem]
    rows = [{name: getattr(upkeep, name) for name in ("table", *FIGURES)} for upkeep in done if not upkeep.problem]
    if as_json:
        print_json({"dry_run": dry_run, "tables": rows, "problems": [problem.to_dict() for problem in problems]})
    else:
        print_table(("table", *FIGURES), [tuple(row.values()) for row in rows])
        if dry_run:
            print("nothing was changed (--dry-run)")
    print_problems(problems)
    return CANNOT_RUN if problems else OK
