"""The facts of a run, or of some batches, as a finished target folder has them: manifests, footers, a few columns.

Spec: docs/land.md#the-report; docs/decisions/0063
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from wirebook.landing.report.column_statistics import TableFacts, add_staged, table_facts
from wirebook.landing.report.dead_letter_statistics import LetterFacts, letter_facts
from wirebook.landing.runs.target import Manifest, TableEntry, Target
from wirebook.landing.tables.layout import DEAD_LETTERS, NO_DEFINITION, RESOLVED, STAGED
from wirebook.problems import Problem, WirebookError

__all__ = ["RunFacts", "committed_batches", "run_facts"]

MAX_TABLES = 100


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What some batches did.

    Shape: `read` and `empty` as the manifests count them, but for replays, which read dead letters; `resolved` letters
    are those that a replay landed: over all batches `read` is `landed` and the letters that are not resolved. `sources`
    counts files of the source. `tables` by rows, the largest first, at most a hundred; `rows` of all tables by name.
    """

    batches: tuple[int, ...]
    read: int
    empty: int
    sources: int
    catalogues: tuple[str, ...]
    endpoints: tuple[str, ...]
    rows: dict[str, int]
    resolved: int
    tables: tuple[TableFacts, ...]
    letters: LetterFacts

    @property
    def landed(self) -> int:
        return sum(self.rows.values())


def committed_batches(folder: Path) -> set[int]:
    """The numbers of the batches that are committed, by the names of their manifests; none where nothing has landed."""
    names = (path.name.partition(".")[0] for path in Target(folder).batches.glob("*[0-9].json"))
    return {int(name) for name in names if name.isdecimal()}


def run_facts(folder: Path, batches: Collection[int] | None = None) -> RunFacts:
    """The facts of some batches, or of all.

    Cost: the footers of their files, and the columns of placeholders and reasons, a piece at a time.
    Raises: WirebookError (``no-target``, ``unknown-batch``, ``broken-target``).
    """
    target = Target(folder)
    if not target.exists:
        raise WirebookError(Problem(code="no-target", message=f"'{folder}' is no folder that was landed into"))
    _check_known(folder, batches)
    manifests = [manifest for manifest in target.manifests() if batches is None or manifest.batch in batches]
    known = target.tables()
    files = _files(target, manifests)
    sizes = {name: sum(rows for _, rows in found) for name, found in files.items()}
    staged = sum((Counter(manifest.staged) for manifest in manifests), Counter())
    tables = Counter({name: rows for name, rows in sizes.items() if name not in NO_DEFINITION and rows}) + staged
    largest = sorted(tables, key=lambda name: (-tables[name], name))[:MAX_TABLES]
    paths = {name: [path for path, _ in found] for name, found in files.items()}
    staged_in = paths.get(STAGED, [])
    facts = {
        name: table_facts(name, known[name].xid if name in known else None, paths.get(name, [])) for name in largest
    }
    for name in staged.keys() & facts.keys() & known.keys():
        add_staged(facts[name], staged_in, known[name].schema)
    return RunFacts(
        batches=tuple(manifest.batch for manifest in manifests),
        read=sum(manifest.read for manifest in manifests if all(file.table != RESOLVED for file in manifest.files)),
        empty=sum(manifest.empty for manifest in manifests),
        sources=len({entry.file for manifest in manifests for entry in manifest.entries}),
        catalogues=tuple(dict.fromkeys(manifest.catalogue for manifest in manifests)),
        endpoints=tuple(dict.fromkeys(manifest.endpoint for manifest in manifests if manifest.endpoint)),
        rows=dict(tables),
        resolved=sizes.get(RESOLVED, 0),
        tables=tuple(facts.values()),
        letters=letter_facts(paths.get(DEAD_LETTERS, ())),
    )


def _xid(entry: TableEntry | None) -> str | None:
    return entry.xid if entry else None


def _check_known(folder: Path, batches: Collection[int] | None) -> None:
    there = committed_batches(folder)
    unknown = sorted(set(batches or ()) - there)
    if unknown:
        known = f"1 to {max(there)}" if there else "none"
        message = f"there is no batch {unknown[0]} in '{folder}'; it has: {known}"
        raise WirebookError(Problem(code="unknown-batch", message=message, actual=unknown[0]))


def _files(target: Target, manifests: list[Manifest]) -> dict[str, list[tuple[Path, int]]]:
    """Table to its files of these batches, each with its rows."""
    found: dict[str, list[tuple[Path, int]]] = {}
    for manifest in manifests:
        for file in manifest.files:
            found.setdefault(file.table, []).append((_committed(target, file.table, file.path), file.rows))
    return found


def _committed(target: Target, table: str, staged: str) -> Path:
    """Where a staged file is since it was committed."""
    return next(_places(target.root / table, Path(staged).name))


def _places(folder: Path, name: str) -> Iterator[Path]:
    """The folder itself, or one below it, as formats have it that keep their files apart."""
    if not (folder / name).exists():
        yield from folder.glob(f"*/{name}")
    yield folder / name
