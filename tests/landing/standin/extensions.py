"""DuckDB extensions from Python packages."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest


def load(connection: Any, *names: str) -> None:
    """Extensions as the packages `duckdb-ext-...` bring them; nothing is fetched."""
    for name in names:
        files = list(Path(sysconfig.get_path("purelib")).glob(f"duckdb_ext/extensions/*/*/{name}.duckdb_extension"))
        if not files:
            pytest.skip(f"DuckDB's extension '{name}' is not installed")
        connection.execute(f"LOAD '{files[0]}'")
