"""The folder of what programs keep for this user's next runs, and could make again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["user_cache"]


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of Wirebook below XDG_CACHE_HOME or ~/.cache, which need not exist."""
    base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home(), ".cache")
    return Path(base, "wirebook")
