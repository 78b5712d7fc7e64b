"""The formats of tables by name."""

from __future__ import annotations

from typing import Final

from wirebook.spark.delta import DeltaFormat
from wirebook.spark.formats import ParquetFormat, TableFormat
from wirebook.spark.iceberg import IcebergFormat

__all__ = ["FORMATS"]

FORMATS: Final[dict[str, TableFormat]] = {form.name: form for form in (ParquetFormat(), DeltaFormat(), IcebergFormat())}
