"""`wirebook views`: SQL that shows each table whole, files of its own and staged rows.

Spec: docs/staging.md#views
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Dialect(StrEnum):
    """Whose SQL."""

    DUCKDB = "duckdb"
    SPARK = "spark"


def views(
    folder: Annotated[Path, typer.Argument(help="A folder that was landed into.")],
    tables: Annotated[list[str] | None, typer.Argument(help="Tables, or XIDs; all unless said.")] = None,
    dialect: Annotated[Dialect, typer.Option(help="Whose SQL.")] = Dialect.DUCKDB,
) -> None:
    """Print a CREATE VIEW statement for each table: its rows wherever they are, with its columns of now."""
    from wirebook.spark.views import view_statements  # noqa: PLC0415 (pyarrow)

    for statement in view_statements(folder, dialect.value, tables or ()):
        print(f"{statement};\n")
