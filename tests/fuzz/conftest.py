"""Add the packages `fuzzing` and `synthesis` to the path; `scripts/fuzz.py` uses them, too."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "corpus")]
