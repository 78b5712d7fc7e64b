"""Wirebook: a message catalogue that runs.

    from wirebook import Catalog
    outcome = Catalog.load("orders.xreg.json").match(record)

Names are loaded when they are used, so that importing one of them does not load the others.
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
