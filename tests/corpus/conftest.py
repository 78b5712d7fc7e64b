"""Puts the package `synthesis` on the path: the tests here and `scripts/differential.py` share it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
