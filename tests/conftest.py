"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No test is timed. In CI the examples are the same each time; elsewhere they are new ones.
settings.register_profile("wirebook", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("wirebook")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real catalogues, texts and events beside the project; tests that need it skip aloud without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"needs the folder '{folder.name}' beside the project: real catalogues, texts and events")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file that start Spark in one of xdist's processes, where they may share a session."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group(f"spark {item.path.stem}"))
