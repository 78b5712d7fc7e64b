"""The reasons why `deltalake` cannot write to a table, in one line without rows of the table, and how to fix them.

Spec: docs/land.md#a-table-that-does-not-take-its-rows
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["how_to_mend", "short_reason"]

COLOURS: Final = re.compile(r"\x1b\[\d+m\W?")
"""The ANSI colours, and the symbols after them, that `deltalake` puts before the lines of its errors."""
BACKTRACE: Final = re.compile(r"^\s*0: .*", re.MULTILINE | re.DOTALL)
PREVIEW: Final = re.compile(r"\s*Preview of invalid data:.*", re.DOTALL)
"""The rows that violate a constraint, which must not appear in messages."""
FEATURES: Final = re.compile(r"Unsupported table features required: \[(.*?)\]")
UNKNOWN: Final = re.compile(r'Unknown\("(.*)"\)')

DISABLE: Final = {"rowTracking": "SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')"}
"""Statements that disable a feature before it is dropped, for features that dropping does not disable."""
DROPPED_AT_ONCE: Final = ("inCommitTimestamp", "rowTracking", "domainMetadata")
"""Features that Delta Lake 4.4 can drop immediately, in the order in which to drop them."""
DROPPED_WITH_HISTORY: Final = ("typeWidening", "typeWidening-preview", "vacuumProtocolCheck", "checkpointProtection")
"""Features that Delta Lake 4.4 can drop together with the history that uses them. Without TRUNCATE HISTORY, dropping
them adds the last feature of this list, which `deltalake` does not support."""


def short_reason(error: Exception) -> str:
    """The message of an error without the native stack trace and without the rows that it quotes. Equal errors have
    equal messages: `deltalake` lists table features in no fixed order, so they are sorted."""
    text = " ".join(BACKTRACE.sub("", PREVIEW.sub("", COLOURS.sub("", str(error)))).split())
    return FEATURES.sub(lambda match: match[0].replace(match[1], ", ".join(sorted(match[1].split(", ")))), text)


def how_to_mend(table: str, reason: str) -> str | None:
    """How to remove the table features that a reason names; None if it names none."""
    if re.search("column.mapp", reason, re.IGNORECASE):
        statement = f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
        return f"remove the column mapping with Spark (`{statement}`)"
    match = FEATURES.search(reason)
    if match is None:
        return None
    features = [_name(feature) for feature in match[1].split(", ")]
    kept = set(features).difference(DROPPED_AT_ONCE, DROPPED_WITH_HISTORY)
    if kept:
        names = ", ".join(features)
        return (
            f"recreate the table without the features {names}, not all of which Delta Lake 4.4 can drop, and name "
            "it in the settings of tables"
        )
    changes = [f"DROP FEATURE {feature} TRUNCATE HISTORY" for feature in DROPPED_WITH_HISTORY if feature in features]
    again = ", the statements with TRUNCATE HISTORY once more after 24 hours" if changes else ""
    for feature in DROPPED_AT_ONCE:
        if feature in features:
            changes += [DISABLE[feature]] if feature in DISABLE else []
            changes.append(f"DROP FEATURE {feature}")
    statements = "; ".join(f"ALTER TABLE {table} {change}" for change in changes)
    return f"remove the features with Spark (`{statements}`{again})"


def _name(feature: str) -> str:
    """The name of a feature in the log, such as ``typeWidening-preview``."""
    if unknown := UNKNOWN.fullmatch(feature):
        return unknown[1]
    if feature == "ClusteredTable":
        return "clustering"
    name = f"{feature[:1].lower()}{feature[1:]}"
    return f"{name.removesuffix('Preview')}-preview" if name.endswith("Preview") else name
