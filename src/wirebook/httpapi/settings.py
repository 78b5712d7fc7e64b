"""What a server keeps of the registry between requests: its model, compiled, and its capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wirebook.core.model.compiled import Model, compile_model
from wirebook.storage.session import Homes, Session


@dataclass(frozen=True, slots=True)
class Settings:
    """Model and capabilities, as they are at one `revision`."""

    revision: int
    model: Model
    homes: Homes
    capabilities: Mapping[str, Any]
    modelsource: Mapping[str, Any]

    def is_mutable(self, kind: str) -> bool:
        """Whether a kind of data may be written."""
        return bool(self.capabilities["available"].get(kind, {}).get("mutable"))


class SettingsCache:
    """The settings, read again when their revision, read in the same transaction, is another."""

    def __init__(self) -> None:
        self.last: Settings | None = None

    def load(self, session: Session) -> Settings:
        if self.last is None or self.last.revision != session.revision():
            self.last = read_settings(session)
        return self.last


def read_settings(session: Session) -> Settings:
    """The settings as the transaction sees them."""
    stored = session.settings()
    model = compile_model(stored.full, stored.homes)
    return Settings(stored.revision, model, stored.homes, stored.capabilities, stored.modelsource)
