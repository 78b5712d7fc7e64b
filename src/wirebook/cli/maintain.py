"""`wirebook maintain`: upkeep of tables.

Spec: docs/how-to/maintain.md
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from wirebook.cli.options import TablesArgument
from wirebook.cli.output import print_json, print_table

FIGURES = ("files", "compacted", "deleted", "expired")


def maintain(  # noqa: PLR0917 (options)
    folder: TablesArgument,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Name of a table, or XID of its definition. Repeatable.")
    ] = None,
    retain: Annotated[
        int, typer.Option(help="Hours for which files and versions are kept that are no longer current.", min=1)
    ] = 168,
    target_size: Annotated[int, typer.Option(help="MiB of a file after compaction.", min=1)] = 128,
    compact: Annotated[bool, typer.Option("--compact/--no-compact", help="Replace small files by larger ones.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would be done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Compact the tables of a folder, and delete files and versions that no reader needs.

    Delta Lake: compaction, a checkpoint of the log, and deletion of files, those of killed runs among them. Iceberg:
    compaction, expiry of snapshots, and deletion of files. Plain Parquet: nothing. Landing can go on meanwhile.
    """
    from wirebook.landing.maintenance import UpkeepOptions, maintain  # noqa: PLC0415

    options = UpkeepOptions(retain, target_size << 20, compact, dry_run)
    done = [asdict(upkeep) for upkeep in maintain(folder, options, table or ())]
    if as_json:
        print_json({"dry_run": dry_run, "tables": done})
        return
    print_table(("table", *FIGURES), [(row["table"], *(row[name] for name in FIGURES)) for row in done])
    if dry_run:
        print("nothing was changed (--dry-run)")
