"""Maintenance of the tables of a target: compacts small files, and deletes files that no reader needs.

Maintenance takes no lock and can run during landing, because both change tables in transactions. Files younger than the
retention are never deleted, so the files of a batch that is being written are kept. No file is deleted while a batch
older than the retention is unfinished, because the next run adds the files of this batch to the tables, or reads dead
letters again.

Spec: docs/how-to/maintain.md
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace

from wirebook.landing.report.show import TableSummary, find_table, in_order
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import CommitFailed, Upkeep, UpkeepOptions
from wirebook.landing.tables.layout import DEAD_LETTERS, STAGED
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import Problem

__all__ = ["Upkeep", "UpkeepOptions", "maintain"]


def maintain(folder: AnyPath, options: UpkeepOptions, tables: Collection[str] = ()) -> Iterator[Upkeep]:
    """Maintain `tables` (names, or XIDs of their definitions), or all tables, as ``wirebook maintain`` does.

        for upkeep in maintain("tables/", UpkeepOptions(retain_hours=24)):
            print(upkeep.table, upkeep.compacted, upkeep.deleted)

    Each table is maintained when its result is requested from the iterator. If a table cannot be maintained, its result
    has a `problem`, and the iterator continues with the next table.

    Raises: WirebookError (no-target, unknown-table, missing-extra, store-failed, iceberg-catalog-failed)
    """
    root = location_of(folder)
    target = Target(root)
    target.check_exists()
    table_format = FORMATS[target.format() or "parquet"]
    table_format.check(root)
    known = _tables(target)
    chosen = [find_table(known, name) for name in tables] or known
    begun = target.unfinished_since()
    deletes = options.deletes and (begun is None or begun > options.retained_since(time.time()))
    for table in chosen:
        # A replay looks up the original settings of a dead letter by its file, so files with different settings must
        # not be merged.
        is_bound = table.name == DEAD_LETTERS and len(_settings_of_dead_letters(target)) > 1
        chosen_options = replace(options, compacts=options.compacts and not is_bound, deletes=deletes)
        place = TablePlace(root, table.name)
        try:
            upkeep = table_format.maintain(place, chosen_options)
        except (CommitFailed, OSError) as error:
            message = f"the table '{table.name}' cannot be maintained: {error}"
            hint = (
                f"{table_format.how_to_mend(table.name, str(error)) or 'correct the table'}; then run the command again"
            )
            problem = Problem("unwritable-target", message, file=str(place.folder), hint=hint)
            upkeep = Upkeep(table.name, 0, problem=problem)
        yield upkeep


def _tables(target: Target) -> list[TableSummary]:
    """The tables in which rows have landed, those without a definition last. Reads only the records of the target, as
    the tables themselves may be damaged."""
    entries, history = target.tables(), target.history()
    names = {name for name, rows in history.rows.items() if rows} | ({STAGED} if history.staged else set())
    return [TableSummary(name, entries[name].xid if name in entries else None, ()) for name in in_order(names)]


def _settings_of_dead_letters(target: Target) -> set[tuple[object, ...]]:
    return {
        (manifest.endpoint, manifest.options)
        for manifest in target.manifests()
        if any(file.table == DEAD_LETTERS for file in manifest.files)
    }
