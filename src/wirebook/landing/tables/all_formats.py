"""All table formats by name."""

from __future__ import annotations

from typing import Final

from wirebook.landing.tables.delta import DeltaFormat
from wirebook.landing.tables.formats import TableFormat
from wirebook.landing.tables.iceberg import IcebergFormat
from wirebook.landing.tables.parquet import ParquetFormat

__all__ = ["FORMATS"]

FORMATS: Final[dict[str, TableFormat]] = {
    table_format.name: table_format for table_format in (ParquetFormat(), DeltaFormat(), IcebergFormat())
}
