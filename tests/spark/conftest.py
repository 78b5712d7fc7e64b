"""Fixtures of the tests of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.landing.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)
