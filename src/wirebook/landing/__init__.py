"""Landing: messages become rows of typed tables, or dead letters if they match no definition or are invalid.

This package uses Arrow and does not import Spark.

from wirebook.landing import land, replay
report = land("captures/", "catalogue.xreg.json", "tables/")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebook.lazy import lazy_names

if TYPE_CHECKING:
    from wirebook.landing.job import land, replay

__all__ = ["land", "replay"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "land": "wirebook.landing.job",
        "replay": "wirebook.landing.job",
    },
)
