"""The main job on Spark: sources, matching, decoding, landing, dead letters.

from wirebook.spark import land, match, replay, table
report = land(spark, "captures/", "catalogue.xreg.json", "tables/")
rows = table(spark, "tables/", "/messagegroups/rides/messages/started")
messages = match(spark.read.text("captures/"), Catalog.load("catalogue.xreg.json"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wirebook.spark.job import land, replay
    from wirebook.spark.matching import match
    from wirebook.spark.views import table

__all__ = ["land", "match", "replay", "table"]

_HOMES: Final = {
    "land": "wirebook.spark.job",
    "match": "wirebook.spark.matching",
    "replay": "wirebook.spark.job",
    "table": "wirebook.spark.views",
}


def __getattr__(name: str) -> Any:
    """Loads what is public only when it is asked for: the command line has other things to do."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
