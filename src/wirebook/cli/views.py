"""`wirebook views`: SQL views of the tables that include their staged rows.

Spec: docs/staging.md#views
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from wirebook.cli.options import TablesArgument


class SqlDialect(StrEnum):
    """The SQL dialects of the views."""

    DUCKDB = "duckdb"
    SPARK = "spark"


def views(
    folder: TablesArgument,
    tables: Annotated[list[str] | None, typer.Argument(help="Names of tables, or XIDs. Default: all tables.")] = None,
    dialect: Annotated[SqlDialect, typer.Option(help="SQL dialect.")] = SqlDialect.DUCKDB,
) -> None:
    """Print a CREATE VIEW statement for each table, with its current columns and its staged rows."""
    from wirebook.spark.views import view_statements  # noqa: PLC0415 (pyarrow)

    for statement in view_statements(folder, dialect.value, tables or ()):
        print(f"{statement};\n")
