"""The public API: load a catalogue, then match, explain, build and transform messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebook.lazy import lazy_names

if TYPE_CHECKING:
    from wirebook.catalog.catalog import Catalog
    from wirebook.catalog.load import load_registry
    from wirebook.definitions.resolve.registry import LoadedRegistry

__all__ = ["Catalog", "LoadedRegistry", "load_registry"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Catalog": "wirebook.catalog.catalog",
        "LoadedRegistry": "wirebook.definitions.resolve.registry",
        "load_registry": "wirebook.catalog.load",
    },
)
