"""Puts the packages `fuzzing` and `synthesis` on the path: the tests here and `scripts/fuzz.py` share them."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "corpus")]
