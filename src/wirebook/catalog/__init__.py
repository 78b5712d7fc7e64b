"""Layer `catalog`: the public face. Load a catalogue, match messages, build messages."""

from __future__ import annotations

from wirebook.catalog.catalog import Catalog
from wirebook.catalog.load import load_registry
from wirebook.catalog.registry import Registry

__all__ = ["Catalog", "Registry", "load_registry"]
