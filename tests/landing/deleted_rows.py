"""Deletes rows as other engines do: by files beside the data files, which stay as they are."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}


def delete_from_delta(folder: Path, *positions: int) -> None:
    """Delete rows of the first file of a Delta table by a deletion vector in the log."""
    log = sorted((folder / "_delta_log").glob("*.json"))
    entries = [json.loads(line) for file in log for line in file.read_text().splitlines()]
    add = next(entry["add"] for entry in entries if "add" in entry)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}
    actions = (
        {"protocol": protocol},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": add | {"deletionVector": _deletion_vector(*positions)}},
    )
    log[-1].with_name(f"{len(log):020}.json").write_text("\n".join(map(json.dumps, actions)))


def _deletion_vector(*positions: int) -> dict[str, Any]:
    """Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vector-format"""
    one_array = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + struct.pack(
        f"<{len(positions)}H", *positions
    )
    data = struct.pack("<IQI", 1681511377, 1, 0) + one_array
    padded = data + bytes(-len(data) % 4)
    digits = (number // 85**power % 85 for (number,) in struct.iter_unpack(">I", padded) for power in (4, 3, 2, 1, 0))
    inline = "".join(map(Z85.__getitem__, digits))
    return {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": len(data), "cardinality": len(positions)}


def delete_from_iceberg(table: Any, position: int, *, equality: bool = False) -> None:
    """Delete a row of the first data file of an Iceberg table by a delete file: by position, or (of the file's content
    nothing is read) by equality."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
    from pyiceberg.typedef import Record

    data = next(iter(table.scan().plan_files())).file.file_path
    path = f"{table.location()}/data/delete-{position}.parquet"
    content = pa.table({"file_path": [data], "pos": [position]})
    local = Path(path.removeprefix("file://"))
    local.parent.mkdir(exist_ok=True)
    pq.write_table(content, local)
    kind = DataFileContent.EQUALITY_DELETES if equality else DataFileContent.POSITION_DELETES
    file = DataFile.from_args(
        content=kind,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=local.stat().st_size,
        equality_ids=[1] if equality else None,
    )
    file.spec_id = 0
    with (
        mock.patch.object(ManifestWriterV2, "content", return_value=ManifestContent.DELETES),
        table.transaction() as transaction,
        transaction.update_snapshot().fast_append() as append,
    ):
        append.append_data_file(file)
