"""Creates the registry in a new database, and the service for a database with a registry."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any, Final

from wirebook.core.entities.attributes import registry_attributes, update
from wirebook.core.entities.state import RegistryEntity
from wirebook.core.entities.validation import DocumentValidator
from wirebook.core.model.capabilities import Offer, initial_capabilities
from wirebook.core.model.datatypes import types_of
from wirebook.core.model.language import VERSION_MODES
from wirebook.core.model.reader import read_model
from wirebook.core.model.source import Fetch
from wirebook.httpapi.handlers.context import DEFAULT_LIMITS, ReadCatalogue, ResponseLimits, ServerContext
from wirebook.httpapi.http.fetching import IncludeFetcher
from wirebook.httpapi.service import Service
from wirebook.storage.database import Database
from wirebook.storage.session import Session, StoredSettings

NO_FETCH: Final[Fetch] = IncludeFetcher()
"""Fetches nothing: no host is allowed."""


def now() -> str:
    """Return the current time as an xRegistry timestamp, without trailing zeros."""
    return datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00").rstrip("0").rstrip(".") + "Z"


def new_id() -> str:
    """Return a random id for the events of a request."""
    return os.urandom(16).hex()


def make_registry(
    database: Database, registryid: str, source: dict[str, Any], offer: Offer, fetch: Fetch = NO_FETCH
) -> bool:
    """Create the registry of a database with the model `source`, unless it has one.

    Return whether the registry, new or existing, has the model `source`.

    Raises: Refused, for a model that is not valid or not supported
    """
    with database.exclusive_transaction() as connection:
        session = Session(connection)
        if session.exists():
            return session.settings().modelsource == source
        new = read_model(source, fetch, VERSION_MODES)
        capabilities = initial_capabilities(offer)
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
    fetch: Fetch = NO_FETCH,
    limits: ResponseLimits = DEFAULT_LIMITS,
) -> Service:
    """Return the service for the registry of a database."""
    return Service(database, ServerContext(now, new_id, validator, offer, fetch, read_catalogue, limits))
