"""Upkeep of the tables of a target: small files become larger ones, and what no reader needs is deleted.

It takes no lock: landing goes on beside it, because both change tables by transactions. Files that are younger than the
retention are never deleted, so those of a batch that is being written stay. No file is deleted while an older batch is
unfinished: the next run adds its files to the tables, or reads dead letters again.

Spec: docs/how-to/maintain.md
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace

from wirebook.landing.report.show import find_table, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import Upkeep, UpkeepOptions
from wirebook.landing.tables.layout import DEAD_LETTERS
from wirebook.landing.tables.names import TablePlace

__all__ = ["Upkeep", "UpkeepOptions", "maintain"]


def maintain(folder: AnyPath, options: UpkeepOptions, tables: Collection[str] = ()) -> Iterator[Upkeep]:
    """Maintain some tables (names, or XIDs of their definitions), or all, as ``wirebook maintain`` does.

        for upkeep in maintain("tables/", UpkeepOptions(retain_hours=24)):
            print(upkeep.table, upkeep.compacted, upkeep.deleted)

    Tables are maintained one after the other, each when its result is read from the iterator.

    Raises: WirebookError (no-target, unknown-table, missing-extra, store-failed)
    """
    root = location_of(folder)
    target = Target(root)
    known = tables_in(root, with_staging=True)
    chosen = [find_table(known, name) for name in tables] or known
    table_format = FORMATS[target.format() or "parquet"]
    begun = target.unfinished_since()
    deletes = options.deletes and (begun is None or begun > options.retained_since(time.time()))
    for table in chosen:
        # A replay tells by the file of a dead letter with which settings it was matched.
        is_bound = table.name == DEAD_LETTERS and len(_settings_of_dead_letters(target)) > 1
        chosen_options = replace(options, compacts=options.compacts and not is_bound, deletes=deletes)
        yield table_format.maintain(TablePlace(root, table.name), chosen_options)


def _settings_of_dead_letters(target: Target) -> set[tuple[object, ...]]:
    return {
        (manifest.endpoint, manifest.options)
        for manifest in target.manifests()
        if any(file.table == DEAD_LETTERS for file in manifest.files)
    }
