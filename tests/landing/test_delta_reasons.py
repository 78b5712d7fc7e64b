"""The reasons for which Delta tables take no rows: short, without data, and with the way to mend them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.landing.test_table_formats import lines
from wirebook.landing.runs.target import Target
from wirebook.landing.tables.delta_reasons import how_to_mend

ANEW = "recreate the table without the features"


@pytest.mark.parametrize(
    ("features", "mend"),
    [
        (["clustering", "domainMetadata"], f"{ANEW} clustering, domainMetadata"),
        (["allowColumnDefaults"], f"{ANEW} allowColumnDefaults"),
        (
            ["domainMetadata", "rowTracking"],
            "`ALTER TABLE a SET TBLPROPERTIES ('delta.enableRowTracking' = 'false'); ALTER TABLE a DROP FEATURE "
            "rowTracking; ALTER TABLE a DROP FEATURE domainMetadata`",
        ),
        (["inCommitTimestamp"], "remove the features with Spark (`ALTER TABLE a DROP FEATURE inCommitTimestamp`)"),
        (["checkpointProtection"], "DROP FEATURE checkpointProtection TRUNCATE HISTORY`, the statements"),
    ],
)
def test_unsupported_features_are_named_with_the_way_to_remove_them(
    workspace: Any, features: list[str], mend: str
) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("1", lines(2))
    workspace.land()
    add_protocol(workspace, features)
    workspace.write("2", lines(2, pad="2"))
    [problem] = workspace.land().problems
    assert mend in problem.hint
    assert problem.hint.endswith("; then run the command again: the rows that were set aside land first")
    [(_, reasons)] = Target(workspace.to).set_aside().items()
    assert Target(workspace.to).aside_problem("a", reasons[2]).hint == problem.hint


@pytest.mark.parametrize(
    ("reason", "mend"),
    [
        ("Unsupported table features required: [TypeWideningPreview]", "DROP FEATURE typeWidening-preview TRUNCATE"),
        ("Column mapping is not supported for write operation 'ADD COLUMN' yet", "'delta.columnMapping.mode' = 'none'"),
        ("Schema evolution on column-mapped tables is not yet supported", "'delta.columnMapping.mode' = 'none'"),
    ],
)
def test_way_to_mend_is_found_in_the_reason(reason: str, mend: str) -> None:
    assert mend in (how_to_mend("a", reason) or "")
    assert how_to_mend("a", "its column 'n' must have a value") is None


def test_reason_of_a_damaged_log_has_no_stack(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("1", lines(2))
    workspace.land()
    (workspace.to / "a" / "_delta_log" / f"{1:020}.json").write_text("{broken\n")
    workspace.write("2", lines(2, pad="2"))
    [problem] = workspace.land().problems
    assert problem.message.endswith("Json error: Encountered unexpected 'b' whilst parsing object")


def add_protocol(workspace: Any, features: list[str]) -> None:
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}
    (workspace.to / "a" / "_delta_log" / f"{1:020}.json").write_text(json.dumps(protocol) + "\n")
