"""Defaults of options: environment variables, then the table `[tool.wirebook]` of pyproject.toml.

Spec: docs/catalogues.md#the-default-catalogue; docs/decisions/0180
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Final

from wirebook.problems import Problem, WirebookError

VARIABLE: Final = "WIREBOOK_CATALOG"
FILE: Final = "pyproject.toml"
KEYS: Final = ("catalog",)


def default_catalog() -> list[str]:
    """Return the catalogue of commands without ``--catalog``. Raises: WirebookError (``bad-setting``) if none is set"""
    if source := os.environ.get(VARIABLE):
        return [source]
    table_and_file = _find_table(Path.cwd())
    if table_and_file is None or "catalog" not in table_and_file[1]:
        message = f"no catalogue: --catalog is missing, {VARIABLE} is not set, and no {FILE} has a default"
        hint = f"add --catalog CATALOGUE, set {VARIABLE}, or add 'catalog' to [tool.wirebook] in {FILE}"
        raise WirebookError(Problem("bad-setting", message, hint=hint))
    file, table = table_and_file
    sources = [table["catalog"]] if isinstance(table["catalog"], str) else table["catalog"]
    if (
        not isinstance(sources, list)
        or not sources
        or not all(isinstance(source, str) and source for source in sources)
    ):
        raise _bad_setting(
            file, f"tool.wirebook.catalog must be a string or an array of strings; got {table['catalog']!r}"
        )
    return [source if "://" in source else str(file.parent / source) for source in sources]


def _find_table(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """Find the table in the closest pyproject.toml, from a folder upwards. Raises: WirebookError (``bad-setting``)"""
    for file in (parent / FILE for parent in (folder, *folder.parents)):
        table = _table_of(file)
        if table is not None:
            return file, table
    return None


def _table_of(file: Path) -> dict[str, Any] | None:
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _bad_setting(file, f"'{file}' cannot be read: {error}") from None
    try:
        tools = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise _bad_setting(file, f"'{file}' is not valid TOML: {error}") from None
    table = tools.get("wirebook") if isinstance(tools, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise _bad_setting(file, f"tool.wirebook must be a table; got {table!r}")
    if unknown := sorted(set(table) - set(KEYS)):
        names = ", ".join(f"'{key}'" for key in unknown)
        allowed = ", ".join(f"'{key}'" for key in KEYS)
        raise _bad_setting(file, f"[tool.wirebook] has unknown keys: {names}; allowed: {allowed}")
    return table


def _bad_setting(file: Path, message: str) -> WirebookError:
    return WirebookError(Problem("bad-setting", message, file=str(file)))
