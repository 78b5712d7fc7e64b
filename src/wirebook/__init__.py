"""Wirebook: a message catalogue that runs.

    from wirebook import Catalog
    outcome = Catalog.load("orders.xreg.json").match(record)

Names are loaded when they are used, so that importing one of them does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirebook.catalog import Catalog
    from wirebook.message.matcher import MatchOptions
    from wirebook.message.selection import Outcome
    from wirebook.problems import Problem, WirebookError

__all__ = ["Catalog", "MatchOptions", "Outcome", "Problem", "WirebookError"]

_HOMES = {
    "Catalog": "wirebook.catalog",
    "MatchOptions": "wirebook.message.matcher",
    "Outcome": "wirebook.message.selection",
    "Problem": "wirebook.problems",
    "WirebookError": "wirebook.problems",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wirebook' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
