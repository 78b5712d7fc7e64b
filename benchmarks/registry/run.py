"""Runs the benchmarks of the registry: `./run bench-registry [--short] [--db URL]`.

The server runs on one core, wrk on another. Each figure is printed with its goal. Baselines are the rate of bare
commits, uvicorn with a constant response, and SQLite alone. A missed goal does not fail the command; an invalid
response does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from catalogue import Catalogue
from figures import Figures, bare_commits, environment, print_figures
from servers import CLIENT_CORE, postgresql
from suite import Suite
from wrk import MISSING

SIZES = {
    "10,000 messages in 1,000 groups": Catalogue(10_000, 1000),
    "100,000 messages in 1,000 groups": Catalogue(100_000, 1000),
    "100,000 messages in one group": Catalogue(100_000, 1),
}
SECONDS, SHORT_SECONDS = 10, 2


def main() -> int:
    options = _options()
    if shutil.which("wrk") is None:
        print(MISSING, file=sys.stderr)
        return 2
    if shutil.which("taskset") is None or (os.cpu_count() or 1) < 2:
        print("server and clients share a core; the figures are lower than on separate cores", file=sys.stderr)
    else:
        os.sched_setaffinity(0, {int(CLIENT_CORE)})
    with tempfile.TemporaryDirectory(prefix="wirebook-bench-", dir=options.folder) as folder, postgresql() as server:
        commits = bare_commits(Path(folder))
        print(f"{environment()}; {commits:,.0f} bare commits/s\n")
        for number, (title, catalogue) in enumerate(list(SIZES.items())[: 1 if options.short else None]):
            if options.only and options.only not in title:
                continue
            subfolder = Path(folder) / str(number)
            subfolder.mkdir()
            _measure(
                title, catalogue, subfolder, commits, options, other=None if options.sqlite else options.db or server
            )
    return 0


def _measure(
    title: str, catalogue: Catalogue, folder: Path, commits: float, options: argparse.Namespace, *, other: str | None
) -> None:
    seconds = options.seconds or (SHORT_SECONDS if options.short else SECONDS)
    file = folder / "registry.db"
    print(f"{title}, SQLite")
    sqlite = Suite(catalogue, f"sqlite:///{file}", file, folder, Figures(commits), seconds)
    sqlite.run()
    beside = None
    if other:
        print(f"{title}, PostgreSQL")
        _empty(other)
        beside = Suite(catalogue, other, None, folder, Figures(commits), seconds)
        beside.run()
    print()
    print_figures(f"{title} ({commits:,.0f} bare commits/s)", sqlite.figures, beside and beside.figures)


def _empty(database: str) -> None:
    """Drop the tables of an earlier run."""
    from sqlalchemy import create_engine, make_url, text  # noqa: PLC0415

    engine = create_engine(make_url(database).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="10,000 messages, and two seconds per load")
    parser.add_argument("--db", help="also measure this PostgreSQL database; its schema 'public' is EMPTIED")
    parser.add_argument("--sqlite", action="store_true", help="measure only SQLite")
    parser.add_argument("--only", help="measure only sizes with this text in their names")
    parser.add_argument("--seconds", type=int, help="seconds per load")
    parser.add_argument("--folder", help="folder of the databases, on the disk to measure")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
