"""A catalogue that is reloaded when its sources change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from wirebook.catalog.catalog import Catalog
from wirebook.catalog.load import documents_in
from wirebook.problems import Severity, WirebookError

__all__ = ["LiveCatalog"]

REGISTRY_SECONDS: Final = 30.0
"""Seconds between requests to a registry for changes. Files are checked on every refresh."""


class LiveCatalog:
    """The newest usable catalogue of its sources, for runs that last for weeks.

    A changed catalogue is not usable if a source cannot be read, if it lacks the `endpoint`, or if it has errors that
    the current catalogue does not have. The current catalogue then stays in use, and `note` receives the reason.
    """

    def __init__(
        self,
        catalog: Catalog,
        sources: Sequence[str],
        endpoint: str | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.catalog, self._sources, self._endpoint, self._note = catalog, sources, endpoint, note
        self._has_registry = any("://" in source for source in sources)
        self._state, self._asked = self._files(), time.monotonic()

    def refresh(self) -> Catalog:
        """Reload the sources if they have changed, and return the catalogue to use."""
        state, is_due = self._files(), time.monotonic() - self._asked >= REGISTRY_SECONDS
        if state == self._state and not (self._has_registry and is_due):
            return self.catalog
        self._state, self._asked = state, time.monotonic()
        try:
            newest = self.catalog.refreshed()
            self._check(newest)
        except WirebookError as error:
            self._note(f"the changed catalogue cannot be used: {error}")
            return self.catalog
        if newest is not self.catalog:
            self._note(f"the catalogue changed: {self.catalog.fingerprint[:8]} is now {newest.fingerprint[:8]}")
            self.catalog = newest
        return self.catalog

    def _check(self, newest: Catalog) -> None:
        """Raises: WirebookError if the catalogue is not usable"""
        if self._endpoint is not None:
            newest.check_endpoint(self._endpoint)
        if newest.registry.unread:
            raise WirebookError(*newest.registry.unread)
        known = {(problem.code, problem.pointer) for problem in self.catalog.diagnostics}
        errors = [problem for problem in newest.diagnostics if problem.severity is Severity.ERROR]
        if added := [problem for problem in errors if (problem.code, problem.pointer) not in known]:
            raise WirebookError(*added)

    def _files(self) -> list[tuple[str, int, int]]:
        """Return the name, modification time and size of every document file."""
        files: list[tuple[str, int, int]] = []
        for path in map(Path, (source for source in self._sources if "://" not in source and source != "-")):
            with suppress(OSError, WirebookError):
                for file in documents_in(path) if path.is_dir() else [path]:
                    with suppress(OSError):
                        status = file.stat()
                        files.append((str(file), status.st_mtime_ns, status.st_size))
        return files
