"""`wirebook views`: SQL views of the tables that include their staged rows.

Spec: docs/staging.md#views
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from wirebook.cli.exit_codes import CANNOT_RUN, OK
from wirebook.cli.options import TablesArgument
from wirebook.cli.output import print_problems


class SqlDialect(StrEnum):
    """The SQL dialects of the views."""

    DUCKDB = "duckdb"
    SPARK = "spark"


def views(
    folder: TablesArgument,
    tables: Annotated[list[str] | None, typer.Argument(help="Names of tables, or XIDs. Default: all tables.")] = None,
    dialect: Annotated[SqlDialect, typer.Option(help="SQL dialect.")] = SqlDialect.DUCKDB,
) -> int:
    """Print a CREATE VIEW statement for each table, with its current columns and its staged rows.

    If a table cannot be read, the others still have statements, and the exit code is 2.
    """
    from wirebook.spark.views import view_statements_and_problems  # noqa: PLC0415 (pyarrow)

    statements, problems = view_statements_and_problems(folder, dialect.value, tables or ())
    for statement in statements:
        print(f"{statement};\n")
    print_problems(problems)
    return CANNOT_RUN if problems else OK
