"""Finds the columns of a DataFrame that hold messages, and converts its Arrow batches to chunks.

The columns have one of three forms. Their names are case-insensitive, as in Spark.

==========  =====================================================================================================
``lines``   ``value``: lines of the capture format, or CloudEvents as JSON (an event, or an array of events)
``capture`` ``protocol`` and other members of the capture format, as in a Parquet capture
``kafka``   the columns of Spark's Kafka source: ``value``, ``topic``, and ``key``, ``headers``, ``partition``,
            ``offset``, ``timestamp``
==========  =====================================================================================================

Spec: docs/how-to/dataframes.md; docs/capture-format.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.capture import EXPECTED
from wirebook.landing.chunks import Chunk, Numbers
from wirebook.problems import Problem, WirebookError

__all__ = [
    "Identity",
    "InputColumns",
    "chunks_of",
    "form_of",
    "identified_rows",
    "identity_of",
    "input_columns",
    "missing_topic",
]

VALUE: Final = "value"
CAPTURE_COLUMNS: Final = ("protocol", *(name for name in EXPECTED if "." not in name))
KAFKA_COLUMNS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
FORMS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "capture": (("protocol",), CAPTURE_COLUMNS),
    "kafka": (("value", "topic"), KAFKA_COLUMNS),
    "lines": ((VALUE,), (VALUE,)),
}
"""The required columns and all columns of each form, in the order in which forms are tried."""

WANTED: Final = (
    "'value' (capture lines or CloudEvents as JSON), or 'value' and 'topic' (as Spark's Kafka source has them; also "
    "'key', 'headers', 'partition', 'offset', 'timestamp'), or 'protocol' and other members of the capture format"
)
PAIR: Final = ("name", "value")
PAIRS: Final = ("headers", "user_properties")


class Identity(NamedTuple):
    """The names of the two columns that identify a message: a text column and an integer column."""

    file: str
    line: str


@dataclass(frozen=True, slots=True)
class InputColumns:
    """The columns of a DataFrame that hold messages.

    Shape: `names` maps the columns of `form` to the names that they have in the DataFrame.
    """

    form: str
    names: Mapping[str, str]

    @property
    def has_offsets(self) -> bool:
        """Whether topic, partition and offset identify the messages."""
        return self.form == "kafka" and {"partition", "offset"} <= self.names.keys()


def input_columns(available: Sequence[str], chosen: Mapping[str, str] | None = None) -> InputColumns:
    """Find the columns that hold messages. `chosen` maps column names that Wirebook knows to those of the DataFrame;
    without it, both have the same names.

    Raises: frame-columns
    """
    by_name = {name.casefold(): name for name in available}
    if chosen is None:
        names = {name: by_name[name] for name in {*CAPTURE_COLUMNS, *KAFKA_COLUMNS} & by_name.keys()}
    else:
        _check_chosen(available, chosen)
        names = {ours: by_name[theirs.casefold()] for ours, theirs in chosen.items()}
    if form := form_of(names):
        used = {name: names[name] for name in FORMS[form][1] if name in names}
        if chosen is not None and (unused := [name for name in chosen if name not in used]):
            message = f"'columns' maps {_quoted(unused)}, which has no meaning beside {_quoted([*used])}"
            hint = "for Kafka messages, map 'topic' and 'value'" if form == "lines" else "omit it"
            raise WirebookError(Problem("frame-columns", message, expected=[*FORMS[form][1]], actual=unused, hint=hint))
        _check_single(available, [*used.values()])
        return InputColumns(form, used)
    message = f"the DataFrame has no columns with messages; found: {_quoted(available)}; needed: {WANTED}"
    hint = "rename the columns, or map them, as in columns={'value': 'payload_json'}"
    raise WirebookError(Problem("frame-columns", message, expected=WANTED, actual=list(available), hint=hint))


def identity_of(identity: object, available: Sequence[str]) -> Identity | None:
    """Find the two columns that a caller specifies as the identity of messages; None stays None.

    Raises: frame-columns, frame-identity
    """
    if identity is None:
        return None
    names = [*identity] if isinstance(identity, list | tuple) else []
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or names[0] == names[1]:
        message = f"'identity' must name two columns, one of text and one of integers; got {identity!r}"
        hint = "name both, as in identity=('file', 'line')"
        raise WirebookError(Problem("frame-columns", message, expected="two columns", actual=repr(identity), hint=hint))
    by_name = {name.casefold(): name for name in available}
    if missing := sorted(name for name in names if name.casefold() not in by_name):
        message = f"'identity' names {missing}, which the DataFrame does not have; found: {[*available]}"
        raise WirebookError(Problem("frame-identity", message, expected=[*available], actual=missing))
    _check_single(available, names)
    return Identity(*(by_name[name.casefold()] for name in names))


def form_of(names: Container[str]) -> str | None:
    """The form of a DataFrame that has columns with these names, or None."""
    return next((form for form, (required, _) in FORMS.items() if all(name in names for name in required)), None)


def missing_topic(
    inputs: InputColumns, available: Sequence[str], chosen: Mapping[str, str] | None = None
) -> list[Problem]:
    """A warning if the columns look like those of Kafka messages without the topic, which are read as lines.

    `available` has the names of all columns. There is no warning if the caller maps columns: lines are then intended.
    """
    beside = [name for name in available if name.casefold() in {*KAFKA_COLUMNS} - {VALUE, "topic"}]
    if inputs.form != "lines" or chosen is not None or not beside:
        return []
    message = (
        f"the DataFrame has the columns 'value' and {_quoted(beside)}, but no 'topic', so its rows are read as lines "
        "of events or captures, and not as Kafka messages"
    )
    hint = f"keep the column 'topic' of the Kafka source; to read lines, map the column, as in columns={inputs.names}"
    return [Problem("missing-topic", message, expected="topic", actual=[*available], hint=hint)]


def _check_single(available: Sequence[str], used: Sequence[str]) -> None:
    count = Counter(name.casefold() for name in available)
    if repeated := [name for name in used if count[name.casefold()] > 1]:
        message = f"the DataFrame has several columns of the name {_quoted(repeated)}"
        hint = "drop all but one of them, or rename them; names that differ only in case are the same"
        raise WirebookError(Problem("frame-columns", message, actual=list(available), hint=hint))


def _check_chosen(available: Sequence[str], chosen: Mapping[str, str]) -> None:
    known = sorted({*CAPTURE_COLUMNS, *KAFKA_COLUMNS})
    if unknown := [name for name in chosen if name not in known]:
        message = f"'columns' maps {_quoted(unknown)}, which Wirebook does not know; it knows: {', '.join(known)}"
        raise WirebookError(Problem("frame-columns", message, expected=known, actual=unknown))
    there = {name.casefold() for name in available}
    if missing := [name for name in chosen.values() if name.casefold() not in there]:
        message = f"'columns' names {_quoted(missing)}, which the DataFrame does not have; found: {_quoted(available)}"
        raise WirebookError(Problem("frame-columns", message, expected=list(available), actual=missing))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


# -- rows to chunks -------------------------------------------------------------------------------------------------


def identified_rows(
    batch: pa.RecordBatch, columns: InputColumns, identity: Identity | None
) -> Iterator[tuple[str, Numbers, pa.RecordBatch]]:
    """Split a batch by file; yields the file, the line of each row, and the rows. File and line are the columns that
    `identity` names; without it, the file is Kafka's topic and partition, and the line is the offset.

    Raises: ValueError if an identifying column has nulls or the wrong type
    """
    if identity is not None:
        files = _texts(batch.column(identity.file), identity.file)
        lines = _integers(batch.column(identity.line), identity.line)
    else:
        topics = _texts(batch.column(columns.names["topic"]), "topic")
        partitions = _integers(batch.column(columns.names["partition"]), "partition")
        lines = _integers(batch.column(columns.names["offset"]), "offset")
        files = pc.binary_join_element_wise(topics, pa.array(partitions).cast(pa.string()), "/")
        files = pc.binary_join_element_wise("kafka", files, ":")
    encoded = files.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    for code, file in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        whole = len(rows) == len(batch)
        yield file, lines[rows], batch if whole else batch.take(pa.array(rows))


def _texts(column: pa.Array, name: str) -> pa.StringArray:
    if column.null_count or not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise ValueError(f"column '{name}' identifies messages, so it must be text without nulls; it is {column.type}")
    return column.cast(pa.string())


def _integers(column: pa.Array, name: str) -> Numbers:
    if column.null_count or not pa.types.is_integer(column.type):
        raise ValueError(f"column '{name}' identifies messages, so it must be integers without nulls")
    numbers: Numbers = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def chunks_of(file: str, numbers: Numbers, batch: pa.RecordBatch, columns: InputColumns) -> Iterator[Chunk]:
    """The rows of a batch as chunks."""
    if columns.form == "lines":
        lines = batch.column(columns.names[VALUE]).cast(pa.large_binary()).fill_null(b"")
        is_event = are_events(lines)
        for file_type, selected in (("capture", ~is_event), ("events", is_event)):
            if selected.any():
                yield Chunk(file, file_type, lines, numbers).only(selected)
        return
    records = _kafka_records if columns.form == "kafka" else _capture_records
    yield Chunk(file, "parquet", None, numbers, records(batch, columns))


def _capture_records(batch: pa.RecordBatch, columns: InputColumns) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(_members(batch, columns))


def _kafka_records(batch: pa.RecordBatch, columns: InputColumns) -> pa.RecordBatch:
    """The columns of a Kafka source as those of a capture. The timestamp of a message is also its receive time."""
    arrays = {"protocol": pa.repeat(pa.scalar("KAFKA"), len(batch))} | _members(batch, columns)
    if "timestamp" in arrays:
        arrays["received"] = arrays["timestamp"]
    return pa.RecordBatch.from_pydict(arrays)


def _members(batch: pa.RecordBatch, columns: InputColumns) -> dict[str, pa.Array]:
    arrays = {ours: batch.column(theirs) for ours, theirs in columns.names.items()}
    return {name: _named_pairs(column) if name in PAIRS else column for name, column in arrays.items()}


def _named_pairs(column: pa.Array) -> pa.Array:
    """Rename the members of pairs to ``name`` and ``value``: Kafka has ``key`` for ``name``, and the case may differ.
    Other columns are returned unchanged."""
    if not pa.types.is_list(column.type) or not pa.types.is_struct(column.type.value_type):
        return column
    names = [field.name for field in column.type.value_type]
    folded = [name.casefold() for name in names]
    first = "name" if "name" in folded else "key"
    if {*PAIR} <= {*names} or not {first, "value"} <= {*folded}:
        return column
    whole = column.take(pa.array(np.arange(len(column))))  # drops values outside a slice
    members = [whole.values.field(folded.index(name)) for name in (first, "value")]
    return pa.ListArray.from_arrays(whole.offsets, pa.StructArray.from_arrays(members, PAIR), mask=whole.is_null())


# -- capture lines or events ----------------------------------------------------------------------------------------


class _Line(msgspec.Struct):
    """The members by which a capture line and an event differ."""

    protocol: msgspec.Raw = msgspec.Raw()
    specversion: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Line).decode


def are_events(lines: pa.LargeBinaryArray) -> npt.NDArray[np.bool_]:
    """A mask of the lines that are CloudEvents: arrays, and objects with ``specversion`` but without ``protocol``."""
    contains = partial(pc.match_substring, lines)
    captures = contains('"protocol"').to_numpy(zero_copy_only=False)
    events = contains('"specversion"').to_numpy(zero_copy_only=False)
    arrays = pc.match_substring_regex(lines, r"^\s*\[").to_numpy(zero_copy_only=False)
    is_event: npt.NDArray[np.bool_] = arrays | (events & ~captures)
    for row in np.flatnonzero(events & captures & ~arrays).tolist():
        is_event[row] = _is_event(lines[row].as_py())
    return is_event


def _is_event(line: bytes) -> bool:
    try:
        members = _decode(line)
    except msgspec.DecodeError:
        return False
    return not bytes(members.protocol) and bool(bytes(members.specversion))
