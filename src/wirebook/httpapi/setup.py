"""A registry set up on a database: made once, with its model and capabilities, and served from then on."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any, Final

from wirebook.core.entities.attributes import registry_attributes, update
from wirebook.core.entities.state import RegistryEntity
from wirebook.core.entities.validation import DocumentValidator
from wirebook.core.model.capabilities import Offer, everything
from wirebook.core.model.datatypes import types_of
from wirebook.core.model.language import VERSION_MODES
from wirebook.core.model.reader import read_model
from wirebook.core.model.source import Fetch
from wirebook.httpapi.handlers.imports import ReadCatalogue
from wirebook.httpapi.handlers.writes import WriteContext
from wirebook.httpapi.http.fetching import IncludeFetcher
from wirebook.httpapi.options import LIMITS, ResponseLimits
from wirebook.httpapi.service import Service
from wirebook.storage.database import Database
from wirebook.storage.session import Session, StoredSettings

NOWHERE: Final[Fetch] = IncludeFetcher()
"""Fetches nothing."""


def now() -> str:
    """The time as entities have it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00").rstrip("0").rstrip(".") + "Z"


def new_id() -> str:
    """Something that no request before had."""
    return os.urandom(16).hex()


def make_registry(
    database: Database, registryid: str, source: dict[str, Any], offer: Offer, fetch: Fetch = NOWHERE
) -> bool:
    """Makes the registry of a database that has none. Whether its model is that of `source`, now or already.

    Raises: Refused, for a model that is none or that asks for more than the Registry has
    """
    with database.exclusive_transaction() as connection:
        session = Session(connection)
        if session.exists():
            return session.settings().modelsource == source
        new = read_model(source, fetch, VERSION_MODES)
        capabilities = everything(offer)
        registry = RegistryEntity("/", {"registryid": registryid, "epoch": 1})
        update(registry, registry_attributes(new.model), {}, patch=False, now=now(), types=types_of(new.model))
        session.create(registry.members, StoredSettings(new.model.full, new.homes, source, capabilities))
        return True


def make_service(
    database: Database,
    validator: DocumentValidator,
    offer: Offer,
    read_catalogue: ReadCatalogue | None = None,
    *,
    fetch: Fetch = NOWHERE,
    limits: ResponseLimits = LIMITS,
) -> Service:
    return Service(database, WriteContext(now, new_id, validator, offer, fetch, read_catalogue, limits))
