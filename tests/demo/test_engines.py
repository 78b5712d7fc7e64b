"""Columns and the reference give the same tables and the same dead letters for all of the demonstration's traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wirebook.catalog import Catalog
from wirebook.demo.captures import write_captures
from wirebook.demo.message_types import CATALOGUE, FILES
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.files import list_files, scan_files
from wirebook.landing.sources.reading import Progress, read_split
from wirebook.landing.sources.splits import split_file

COUNT = 3_000


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    write_captures(folder, COUNT, 11)
    return folder


def landed(engine: CatalogueEngine, file: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table, the dead letters with them, in the order of lines."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for scan in scan_files(list_files(file).files):
        for split in split_file(scan, None).splits:
            for chunk in read_split(split, Progress(lines=0)):
                land = engine.land(chunk)
                tables: dict[str, pa.Table] = {**land.tables, "dead_letters": land.dead_letters}
                for name, table in tables.items():
                    rows.setdefault(name, []).extend(table.to_pylist())
    return {name: sorted(each, key=lambda row: int(row["_line"])) for name, each in rows.items()}


@pytest.mark.parametrize("name", FILES)
def test_columns_and_reference_land_the_same_rows(captures: Path, name: str) -> None:
    catalog = Catalog.load(CATALOGUE)
    by_columns = landed(CatalogueEngine(catalog), captures / name)
    assert by_columns == landed(CatalogueEngine(catalog, columns=False), captures / name)
    assert len(by_columns) > 1
