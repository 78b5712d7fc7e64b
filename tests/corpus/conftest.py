"""Add the package `synthesis` to the path; `scripts/differential.py` uses it, too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
