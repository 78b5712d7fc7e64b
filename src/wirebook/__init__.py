"""Describe your messages once; Wirebook checks real traffic against the descriptions and lands it as typed tables.

    from wirebook import Catalog
    outcome = Catalog.load("orders.xreg.json").match(record)

Public names are imported on first use, so that using one does not import the modules of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebook.lazy import lazy_names

if TYPE_CHECKING:
    from wirebook.catalog import Catalog
    from wirebook.definitions.match.options import MatchOptions
    from wirebook.definitions.match.outcome import Outcome
    from wirebook.problems import Problem, WirebookError

__all__ = ["Catalog", "MatchOptions", "Outcome", "Problem", "WirebookError"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Catalog": "wirebook.catalog",
        "MatchOptions": "wirebook.definitions.match.matcher",
        "Outcome": "wirebook.definitions.match.selection",
        "Problem": "wirebook.problems",
        "WirebookError": "wirebook.problems",
    },
)
