"""The user's cache folder, for files that make later runs faster and can be created again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["user_cache"]


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Wirebook's folder in XDG_CACHE_HOME or ~/.cache. It need not exist."""
    base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home(), ".cache")
    return Path(base, "wirebook")
