"""Why `deltalake` does not write to a table, in a line without rows of the table, and how to mend it.

Spec: docs/land.md#a-table-that-does-not-take-its-rows
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["how_to_mend", "short_reason"]

COLOURS: Final = re.compile(r"\x1b\[\d+m\W?")
"""What `deltalake` puts before the lines of its errors."""
BACKTRACE: Final = re.compile(r"^\s*0: .*", re.MULTILINE | re.DOTALL)
PREVIEW: Final = re.compile(r"\s*Preview of invalid data:.*", re.DOTALL)
"""Rows that violate a constraint."""
FEATURES: Final = re.compile(r"Unsupported table features required: \[(.*?)\]")
UNKNOWN: Final = re.compile(r'Unknown\("(.*)"\)')

DISABLE: Final = {"rowTracking": "SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')"}
"""What ends the use of a feature before it is dropped, if dropping it does not do so."""
DROPPED_AT_ONCE: Final = ("inCommitTimestamp", "rowTracking", "domainMetadata")
"""Features that Delta Lake 4.4 drops at once, in the order in which they are dropped."""
DROPPED_WITH_HISTORY: Final = ("typeWidening", "typeWidening-preview", "vacuumProtocolCheck", "checkpointProtection")
"""Those that it drops with the history that needs them. Without TRUNCATE HISTORY, dropping them adds the last one,
which `deltalake` does not support."""


def short_reason(error: Exception) -> str:
    """What an error says, without the stack of native code, and without the preview of the rows that it is about. The
    same error gives the same text: `deltalake` has no order of features."""
    text = " ".join(BACKTRACE.sub("", PREVIEW.sub("", COLOURS.sub("", str(error)))).split())
    return FEATURES.sub(lambda match: match[0].replace(match[1], ", ".join(sorted(match[1].split(", ")))), text)


def how_to_mend(table: str, reason: str) -> str | None:
    """What removes the table features that a reason names; None if it names none."""
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
            f"create the table anew without the features {names}, not all of which Delta Lake 4.4 can drop, and name "
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
    """The name that a feature has in the log, as in ``typeWidening-preview``."""
    if unknown := UNKNOWN.fullmatch(feature):
        return unknown[1]
    if feature == "ClusteredTable":
        return "clustering"
    name = f"{feature[:1].lower()}{feature[1:]}"
    return f"{name.removesuffix('Preview')}-preview" if name.endswith("Preview") else name
