"""A campaign over one catalogue: generate and change messages, land them with both engines, and report differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from synthesis.agreement import DEAD_LETTERS, Difference, Engines, Result
from synthesis.carriers import chunk_of_lines, chunk_of_rows
from synthesis.dice import Dice, dice_of
from synthesis.expectation import Place, places_of
from synthesis.messages import Message, Way, message_of, ways_of
from synthesis.mutations import mutate
from synthesis.prefixes import with_prefix
from synthesis.rich import HAS_JSON_BESIDE
from wirebook.catalog import Catalog
from wirebook.definitions.compile.definition import Definition
from wirebook.problems import WirebookError
from wirebook.schema import Unsupported, parse_format

CHUNK = 2000


@dataclass
class Report:
    """What a campaign found. `differences` between the engines; `misplaced`: messages that a definition describes and
    that did not land in its table, without another definition having the better claim; `unbuilt`: could not be made.
    `by_format` counts by the format of the payload and the protocol, `coded` the codes of problems."""

    messages: int = 0
    valid: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    unbuilt: list[str] = field(default_factory=list)
    placed: Counter[str] = field(default_factory=Counter)
    by_way: Counter[str] = field(default_factory=Counter)
    by_format: Counter[tuple[str, str]] = field(default_factory=Counter)
    coded: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    strangers: int = 0
    strangers_settled: int = 0

    @property
    def is_clean(self) -> bool:
        return not (self.differences or self.misplaced or self.unbuilt)

    def add(self, other: Report) -> None:
        self.messages += other.messages
        self.valid += other.valid
        self.strangers += other.strangers
        self.strangers_settled += other.strangers_settled
        for name in ("outcomes", "placed", "by_way", "by_format", "coded", "settled"):
            getattr(self, name).update(getattr(other, name))
        for name in ("differences", "misplaced", "unbuilt"):
            getattr(self, name).extend(getattr(other, name))

    def __str__(self) -> str:
        problems = [*map(str, self.differences), *self.misplaced, *self.unbuilt]
        return "\n\n".join(problems[:10]) + (f"\n\nand {len(problems) - 10} more" if len(problems) > 10 else "")


def run(
    catalog: Catalog, seed: int | str, count: int, strangeness: float = 0.3, strangers: Sequence[Message] = ()
) -> Report:
    """A campaign of `count` messages, and at least one of each definition: half of them valid, half changed.

    `strangers` are messages of another catalogue, most of which match nothing here; both engines land them, too.
    """
    dice = dice_of(seed, strangeness)
    count = max(count, 2 * len(_usable(catalog)))
    report = Report()
    engines = Engines(catalog)
    traffic = _traffic(catalog, dice, report)
    while part := list(islice(traffic, min(CHUNK, count - report.messages))):
        _land(engines, part, report)
    _land_strangers(engines, strangers, report)
    return report


def some_messages(catalog: Catalog, seed: int | str, count: int) -> list[Message]:
    """The first messages of a campaign: as many, or fewer where no more can be built."""
    return list(islice(_traffic(catalog, dice_of(seed), Report()), count))


def _traffic(catalog: Catalog, dice: Dice, report: Report) -> Iterator[Message]:
    """A message of each definition, then round after round one on each way; each once as it is and once changed.

    Ends when a whole round built nothing: then no other would.
    """
    journeys = [(definition, way) for definition in _usable(catalog) for way in ways_of(definition)]
    first = [(definition, dice.choice(list(ways_of(definition)))) for definition in _usable(catalog)]
    built = True
    while journeys and built:
        built = False
        dice.shuffle(journeys)
        for definition, way in (*first, *journeys):
            try:
                message = message_of(catalog, definition, way, dice)
            except WirebookError as error:
                report.unbuilt.append(f"{definition.xid} {way}: {error}")
                continue
            built = True
            if catalog.options.confluent_prefix:
                message = with_prefix(message, catalog.schema_of(definition), dice)
            yield message
            yield mutate(message, dice)
        first = []
    if journeys:
        report.unbuilt.append(f"a round of {len(journeys)} messages, of which none could be built, ended the traffic")


def format_of(catalog: Catalog, message: Message) -> str:
    """The format of a message's payload, with the encoding where there are two; ``none``: no schema."""
    family = parse_format(catalog.definitions[message.definition].schema_format or "none").family
    if family not in HAS_JSON_BESIDE:
        return family
    is_binary = b'base64"' in message.line
    return f"{family} binary" if is_binary else f"{family} JSON"


def _usable(catalog: Catalog) -> list[Definition]:
    return [definition for definition in catalog.definitions.values() if not definition.incomplete]


def _land(engines: Engines, messages: Sequence[Message], report: Report) -> None:
    """Messages in all carriers; what the reference says of each valid one is held against where it belongs."""
    events = [message for message in messages if message.is_event_file]
    records = [message for message in messages if not message.is_event_file]
    report.messages += len(messages)
    report.by_format.update((format_of(engines.catalog, message), message.way.protocol) for message in messages)
    for kind, part in (("events", events), ("capture", records)):
        result = engines.compare(chunk_of_lines(part, kind), part)
        _count(engines.catalog, result, part, report)
    report.differences += engines.compare_outcomes(records)
    chunk, landed = chunk_of_rows(records)
    report.differences += engines.compare(chunk, landed).differences


def _land_strangers(engines: Engines, messages: Sequence[Message], report: Report) -> None:
    events = [message for message in messages if message.is_event_file]
    records = [message for message in messages if not message.is_event_file]
    for kind, part in (("events", events), ("capture", records)):
        result = engines.compare(chunk_of_lines(part, kind), part)
        report.differences += result.differences
        report.strangers += len(part)
        report.strangers_settled += sum(line in result.settled for line in range(len(part)))
    report.differences += engines.compare_outcomes(records)
    chunk, landed = chunk_of_rows(records)
    report.differences += engines.compare(chunk, landed).differences


def _count(catalog: Catalog, result: Result, messages: Sequence[Message], report: Report) -> None:
    report.outcomes.update(result.landed.outcomes)
    report.coded.update(result.landed.reasons)
    report.differences += result.differences
    rows = result.rows
    for line, message in enumerate(messages, start=1):
        if not message.mutations:
            report.valid += 1
            report.by_way[str(message.way)] += 1
            report.settled[str(message.way)] += line - 1 in result.settled
            where, problem = _placed(catalog, message, rows.get((line, 0), []))
            report.placed[where] += 1
            report.misplaced += [problem] if problem else []
        else:
            report.misplaced += _against_the_index(catalog, message, line, rows)


def _placed(catalog: Catalog, message: Message, rows: list[tuple[str, dict[str, Any]]]) -> tuple[str, str | None]:
    """How a valid message did, and what is wrong with that, if anything."""
    place, (table, row) = places_of(catalog, message)[0], rows[0]
    outcome = row["outcome"] if table == DEAD_LETTERS else "matched"
    description = (
        f"{message.definition} {message.way}: {table} {outcome}\n  {message}\n  best: {set(place.best)}\n  {row}"
    )
    if not place.fits:
        return "unfit", f"does not fit its own definition: {description}"
    if message.definition not in place.best:
        return "outranked", None if _is_of(
            row, table, place, catalog
        ) else f"not where the better one says: {description}"
    if len(place.best) > 1:
        allowed = outcome in ("matched", "ambiguous", "invalid-payload")
        return f"tie: {outcome}", None if allowed else f"a tie that is neither: {description}"
    unread = isinstance(catalog.schema_of(catalog.definitions[message.definition]), Unsupported)
    if outcome != ("unsupported" if unread else "matched") or not _is_of(row, table, place, catalog):
        return "lost", f"did not land in its table: {description}"
    if outcome == "matched" and (wrong := _wrong_bindings(message, row)):
        return "misread", f"bindings are not the context ({wrong}): {description}"
    return "own", None


def _is_of(row: dict[str, Any], table: str, place: Place, catalog: Catalog) -> bool:
    """Is the row of one of the best definitions: in its table, or a dead letter that names it?"""
    return _definition_of(table, row) in place.best


def _definition_of(table: str, row: dict[str, Any]) -> str | None:
    """What a dead letter names; a table is of one definition, whose XID the engine gives it as its name."""
    named: str | None = row["definition"] if table == DEAD_LETTERS else table
    return named


def _wrong_bindings(message: Message, row: dict[str, Any]) -> Iterable[str]:
    return [name for name, value in message.context.items() if f"ctx_{name}" in row and row[f"ctx_{name}"] != value]


def _against_the_index(catalog: Catalog, message: Message, line: int, rows: Any) -> list[str]:
    """The index prunes and never decides (D49): a changed message that no definition fits is no definition's."""
    problems = []
    for index, place in enumerate(places_of(catalog, message)):
        for table, row in rows.get((line, index), []):
            definition = _definition_of(table, row)
            unexpected = table == DEAD_LETTERS and row["outcome"] == "unexpected"
            if (definition is not None and definition not in place.best) or (unexpected and place.best):
                problems.append(f"the index decided: {message}\n  best: {set(place.best)}\n  {table} {row}")
    return problems


__all__ = ["Report", "Way", "run"]
