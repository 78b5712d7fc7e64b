"""The context of handlers: the request, its transaction, the settings of the registry, and services of the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.entities.validation import DocumentValidator
from wirebook.core.model.capabilities import Offer
from wirebook.core.model.compiled import Model
from wirebook.core.model.source import Fetch
from wirebook.httpapi.handlers.settings import Settings
from wirebook.httpapi.http.messages import ApiRequest
from wirebook.problems import Problem
from wirebook.storage.session import Session

MIB: Final = 1 << 20

Groups = Mapping[str, Mapping[str, Any]]
"""Groups by type and id, as in the body of a POST to the Registry."""

FitToModel = Callable[[Model], tuple[Groups, tuple[Problem, ...]]]
"""Converts a parsed catalogue to the Groups that a registry with a model accepts, and reports every change."""

ReadCatalogue = Callable[[bytes], FitToModel]
"""Parses a catalogue document of any dialect. Raises: WirebookError"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """The limits of one response.

    Units: `page` in entities, `response` in bytes (None: no limit), and the seconds that rendering a response or an
    export may take.
    """

    page: int = 1000
    response: int | None = 256 * MIB
    read_seconds: float = 30
    export_seconds: float = 300


DEFAULT_LIMITS: Final = ResponseLimits()


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The services of the server that handlers use, such as the clock, document validation and limits.

    `offer` has the formats that `validator` supports. `fetch` returns the documents that a model includes.
    `read_catalogue` parses imports; None if imports are not supported.
    """

    now: Callable[[], str]
    new_id: Callable[[], str]
    validator: DocumentValidator
    offer: Offer
    fetch: Fetch
    read_catalogue: ReadCatalogue | None = None
    limits: ResponseLimits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request in one database transaction."""

    request: ApiRequest
    session: Session
    settings: Settings
    server: ServerContext
