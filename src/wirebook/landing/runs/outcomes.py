"""Matches the messages of a source one by one, without Spark, for `wirebook match`.

Files are read in the same way as for landing. The reference path of the engine matches each message.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirebook.catalog import Catalog
from wirebook.definitions.match.outcome import Outcome
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.files import list_files, scan_files
from wirebook.landing.sources.reading import Progress, read_split
from wirebook.landing.sources.splits import split_file, with_formats
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.tables.reference_rows import MessageOrigin


def outcomes_in(
    source: AnyPath, catalog: Catalog, endpoint: str | None = None
) -> Iterator[tuple[MessageOrigin, Outcome | None]]:
    """Every message of a file or folder with its outcome, files in path order. The outcome of a record without messages
    is None.

    Raises: WirebookError (``unreadable-file``, ``unknown-endpoint``).
    """
    if endpoint is not None:
        catalog.check_endpoint(endpoint)
    engine = CatalogueEngine(catalog, endpoint=endpoint, columns=False)
    for scan in with_formats(scan_files(list_files(location_of(source)).files)):
        for split in split_file(scan, None).splits:
            for chunk in read_split(split, Progress(lines=0)):
                yield from engine.outcomes(chunk)
