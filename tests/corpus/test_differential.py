"""The two engines agree on every real catalogue. This is a short run; `./run differential` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthesis.campaign import run, some_messages

from wirebook.catalog import Catalog

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "corpus"
CATALOGUES = sorted((*SHARED.glob("production/*.json"), *SHARED.glob("spec-scenarios/*.json")))
MESSAGES = 30


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name.partition(".")[0])
def test_engines_agree_on_catalogue(path: Path) -> None:
    """Valid messages land in their definition's table, and the engines agree on all of them, changed ones and those of
    another catalogue included."""
    other = CATALOGUES[(CATALOGUES.index(path) + 1) % len(CATALOGUES)]
    strangers = some_messages(Catalog.load(str(other)), f"2 {path.name}", MESSAGES)
    report = run(Catalog.load(str(path)), f"1 {path.name}", MESSAGES, strangers=strangers)
    assert report.messages >= MESSAGES
    assert report.is_clean, str(report)
    assert report.strangers_settled > 0


def test_all_catalogues_are_tested(shared: Path) -> None:
    assert len(CATALOGUES) == 48 + 9
