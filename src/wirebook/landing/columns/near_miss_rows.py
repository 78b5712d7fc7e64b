"""The columns `problems` and `near` of dead letters, for many messages at once.

Spec: docs/semantics.md D49; docs/decisions/0203-dead-letters-by-columns.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.definitions.compile.fit import preview
from wirebook.definitions.match.selection import NO_DEFINITION
from wirebook.landing.columns.message_columns import MessageColumns
from wirebook.landing.columns.near_candidates import CONFLICT, Discrepancy, NearCandidate, SlotKey
from wirebook.landing.columns.slot_columns import Mask, Rows, codes_of, distinct, ragged
from wirebook.landing.columns.value_classes import ValueClasses
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, REASON
from wirebook.landing.tables.reference_rows import reason
from wirebook.problems import Problem
from wirebook.text.preview import MAX_PREVIEW

NEAR: Final = DEAD_LETTER_SCHEMA.field("near").type


class EncodedSlot(NamedTuple):
    """A slot of many messages, dictionary-encoded.

    Shape: `values` are the distinct values; the first is None, for an absent slot. `codes` has the position of each
    message's value in `values`. `texts` are the values without the first.
    """

    values: list[str | None]
    codes: Rows
    texts: pa.StringArray

    @classmethod
    def of(cls, texts: pa.StringArray) -> EncodedSlot:
        encoded = texts.dictionary_encode()
        return cls([None, *encoded.dictionary.to_pylist()], codes_of(encoded), encoded.dictionary)

    def replaced(self, texts: pa.StringArray) -> EncodedSlot:
        """The slot with other values. `texts` has a replacement for each of the slot's own `texts`."""
        encoded = EncodedSlot.of(texts)
        return encoded._replace(codes=np.append(0, encoded.codes)[self.codes])

    def joined(self, other: EncodedSlot, is_other: Mask) -> EncodedSlot:
        """The slot with the values of `other` for the messages in the mask `is_other`, and its own for the rest."""
        if is_other.all():
            return other
        codes = np.where(is_other & (other.codes > 0), other.codes + len(self.texts), self.codes)
        texts = pa.concat_arrays([self.texts, other.texts])
        return EncodedSlot([*self.values, *other.values[1:]], codes, texts)


class Slots:
    """The slots of messages, each encoded on first use.

    `sure` is a mask of the messages in which all slots used so far are certain. `classes` has the value classes of the
    indexed slots.
    """

    def __init__(self, messages: MessageColumns, sure: Mask, classes: Mapping[SlotKey, ValueClasses]) -> None:
        self.count = len(messages)
        self.sure = sure
        self._messages = messages
        self._classes = classes
        self._encoded: dict[SlotKey, EncodedSlot | None] = {}
        self._reduced: dict[SlotKey, EncodedSlot] = {}

    def encoded(self, slot_key: SlotKey) -> EncodedSlot | None:
        """The encoded slot; None for a slot without a column. Updates `sure`."""
        if slot_key not in self._encoded:
            column = self._messages.column(*slot_key)
            self._encoded[slot_key] = None
            if column is not None:
                self.sure &= ~column.doubtful
                self._encoded[slot_key] = EncodedSlot.of(column.text)
        return self._encoded[slot_key]

    def reduced(self, slot_key: SlotKey, encoded: EncodedSlot) -> EncodedSlot:
        """An indexed slot, with each value replaced by the representative of its class."""
        if slot_key not in self._reduced:
            self._reduced[slot_key] = encoded.replaced(self._classes[slot_key].reduce(encoded.texts))
        return self._reduced[slot_key]

    def value(self, slot_key: SlotKey, row: int) -> str | None:
        encoded = self.encoded(slot_key)
        return None if encoded is None else encoded.values[encoded.codes[row]]


class NearMissRows(NamedTuple):
    """The columns `problems` and `near` of dead letters.

    Shape: `rows` are the positions of the dead letters among the messages. `codes` counts the dead letters by problem
    code; a dead letter counts once for each of its codes.
    """

    rows: Rows
    problems: pa.ListArray
    near: pa.ListArray
    codes: Counter[str]


def near_miss_rows(
    slots: Slots,
    shapes: Sequence[tuple[NearCandidate, ...]],
    shape: Rows,
    rows: Rows,
    conflicts: Sequence[Discrepancy],
) -> NearMissRows:
    """Build the columns for the messages `rows`. `shape` has the position of each message's shape in `shapes`.
    `conflicts` has a discrepancy for each `CONFLICT` of each row, in order."""
    nears = list(chain.from_iterable(shapes))
    discrepancies = list(chain.from_iterable(near.discrepancies for near in nears))
    near_numbers, near_counts = ragged(list(map(len, shapes)), shape[rows])
    numbers, counts = ragged([len(near.discrepancies) for near in nears], near_numbers)
    owners = np.repeat(np.repeat(rows, near_counts), counts)
    reasons = _reasons(slots, discrepancies, numbers, owners, conflicts)
    of_near = pa.ListArray.from_arrays(_offsets(np.append(counts, 1)), reasons)  # the last: no near miss

    xids = pa.array([near.candidate.definition for near in nears], pa.string()).take(pa.array(near_numbers))
    near = pa.StructArray.from_arrays([xids, of_near.slice(0, len(near_numbers))], fields=list(NEAR.value_type))
    closest = np.where(near_counts > 0, np.cumsum(near_counts) - near_counts, len(near_numbers))
    return NearMissRows(
        rows,
        problems=of_near.take(pa.array(closest)),
        near=pa.ListArray.from_arrays(_offsets(near_counts), near),
        codes=_problem_codes(shapes, np.bincount(shape[rows], minlength=len(shapes))),
    )


def _reasons(
    slots: Slots,
    discrepancies: Sequence[tuple[Discrepancy, SlotKey | None]],
    numbers: Rows,
    owners: Rows,
    conflicts: Sequence[Discrepancy],
) -> pa.StructArray:
    """The discrepancies at the positions `numbers`, each for the message in `owners`, as structs (`REASON`). One more
    is appended, for messages without near misses. `conflicts` has a discrepancy for each `CONFLICT`, in order."""
    known, known_number = distinct([discrepancy for discrepancy, _ in discrepancies], numbers)
    is_conflict = np.array([discrepancy is CONFLICT for discrepancy in known], bool)
    known_number[is_conflict[known_number]] = len(known) + np.arange(len(conflicts))
    code, slot, expected, actual = (
        pa.array(column, pa.string()) for column in zip(*known, *conflicts, reason_of(NO_DEFINITION), strict=True)
    )
    # The actual value comes from the slot of the message, or from the discrepancy if the slot has no column.
    actual_values, actual_number = [actual], known_number.copy()
    slot_keys, key_number = distinct([slot_key for _, slot_key in discrepancies], numbers)
    for position, slot_key in enumerate(slot_keys):
        encoded = None if slot_key is None else slots.encoded(slot_key)
        if encoded is not None:
            is_here = key_number == position
            actual_number[is_here] = sum(map(len, actual_values)) + encoded.codes[owners[is_here]]
            actual_values += [pa.nulls(1, pa.string()), previews(encoded.texts)]
    last = len(code) - 1
    chosen = pa.array(np.append(known_number, last))
    columns = [column.take(chosen) for column in (code, slot, expected)]
    columns.append(pa.concat_arrays(actual_values).take(pa.array(np.append(actual_number, last))))
    return pa.StructArray.from_arrays(columns, fields=list(REASON))


def _problem_codes(shapes: Sequence[tuple[NearCandidate, ...]], counts: Rows) -> Counter[str]:
    """The number of messages with each problem code. `counts` has the number of messages of each shape."""
    codes: Counter[str] = Counter()
    for nears, count in zip(shapes, counts.tolist(), strict=True):
        problems = [discrepancy.code for discrepancy, _ in nears[0].discrepancies] if nears else [NO_DEFINITION.code]
        codes.update(dict.fromkeys(problems, count))  # a message that has a code twice counts once
    return codes


def reason_of(problem: Problem) -> Discrepancy:
    texts = reason(problem)
    return Discrepancy(problem.code, texts["slot"], texts["expected"], texts["actual"])


def previews(texts: pa.StringArray) -> pa.StringArray:
    """Values as problems show them: long ones are shortened."""
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    return texts if longest <= MAX_PREVIEW else pa.array(map(preview, texts.to_pylist()), pa.string())


def _offsets(counts: Rows) -> pa.Int32Array:
    return pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
