"""Landing and matching on Spark.

from wirebook.spark import land, match, replay, table
report = land(spark, "captures/", "catalogue.xreg.json", "tables/")
rows = table(spark, "tables/", "/messagegroups/rides/messages/started")
messages = match(spark.read.text("captures/"), "catalogue.xreg.json")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebook.lazy import lazy_names

if TYPE_CHECKING:
    from wirebook.spark.job import land, land_batch, replay
    from wirebook.spark.matching import match
    from wirebook.spark.stream_endpoints import read_stream
    from wirebook.spark.views import table

__all__ = ["land", "land_batch", "match", "read_stream", "replay", "table"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "land": "wirebook.spark.job",
        "land_batch": "wirebook.spark.job",
        "match": "wirebook.spark.matching",
        "read_stream": "wirebook.spark.stream_endpoints",
        "replay": "wirebook.spark.job",
        "table": "wirebook.spark.views",
    },
)
