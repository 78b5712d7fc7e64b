"""The settings of a registry: its compiled model and its capabilities, cached between requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wirebook.core.model.compiled import Model, compile_model
from wirebook.storage.session import Homes, Session


@dataclass(frozen=True, slots=True)
class Settings:
    """The model and the capabilities at one `revision`."""

    revision: int
    model: Model
    homes: Homes
    capabilities: Mapping[str, Any]
    modelsource: Mapping[str, Any]

    def is_available(self, name: str) -> bool:
        """Return whether the capability `available` lists a name, such as ``export``."""
        return name in self.capabilities["available"]

    def is_mutable(self, name: str) -> bool:
        """Return whether the capability `available` allows writes of data such as ``entities`` or ``modelsource``."""
        return bool(self.capabilities["available"].get(name, {}).get("mutable"))


class SettingsCache:
    """Caches the settings until their revision changes. Each transaction compares the revision."""

    def __init__(self) -> None:
        self.last: Settings | None = None

    def load(self, session: Session) -> Settings:
        """Return the settings in a transaction."""
        if self.last is None or self.last.revision != session.revision():
            self.last = read_settings(session)
        return self.last


def read_settings(session: Session) -> Settings:
    """Return the settings in a transaction without caching them: a write may change them and still be rolled back."""
    stored = session.settings()
    model = compile_model(stored.full, stored.homes)
    return Settings(stored.revision, model, stored.homes, stored.capabilities, stored.modelsource)
