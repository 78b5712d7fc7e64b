"""The messages of a source, one by one, each with its outcome: what `wirebook match` prints.

No Spark runs here: files are read as landing reads them, and the reference says what each message is.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

from wirebook.catalog import Catalog
from wirebook.definitions.match.outcome import Outcome
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.files import list_files, scan_files
from wirebook.landing.sources.reading import Progress, read_unit
from wirebook.landing.sources.splits import cut_file
from wirebook.landing.tables.reference_rows import MessageOrigin


def outcomes_in(
    source: str | PathLike[str], catalog: Catalog, endpoint: str | None = None
) -> Iterator[tuple[MessageOrigin, Outcome | None]]:
    """Every message of a file or folder, files in path order; None for a record that holds no message.

    Raises: WirebookError (``unreadable-file``, ``unknown-endpoint``).
    """
    if endpoint is not None:
        catalog.check_endpoint(endpoint)
    engine = CatalogueEngine(catalog, endpoint=endpoint, columns=False)
    for scan in scan_files(list_files(source).files):
        for unit in cut_file(scan, None).units:
            for chunk in read_unit(unit, Progress(lines=0)):
                yield from engine.outcomes(chunk)
