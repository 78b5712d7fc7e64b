"""Changes that only the operator of a registry may make, in its database.

Spec: core/spec.md#readonly-attribute; docs/registry.md#read-only-resources; docs/registry.md#default-capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.model.target import RequestTarget, parse_target
from wirebook.httpapi.handlers.writes import Writing
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.server import open_service
from wirebook.httpapi.service import Service
from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import Refused
from wirebook.storage.session import Session


def set_readonly(database: str, xid: str, *, is_on: bool) -> bool:
    """Locks a Resource against clients, or unlocks it; says whether it was not so before.

    Raises: not-a-resource; what `open_service` raises
    """
    with open_service(ServerOptions(database=database), must_exist=True) as service:
        return lock(service, xid, is_on=is_on)


def lock(service: Service, xid: str, *, is_on: bool) -> bool:
    """As `set_readonly`. Raises: not-a-resource"""

    def work(session: Session) -> bool:
        settings = service.cache.load(session)
        target = parse_target(xid, settings.model)
        if target.kind != "resource" or target.details:
            raise WirebookError(Problem("not-a-resource", f"'{xid}' is no xid of a Resource"))
        return Writing(session, settings, service.rules, service.rules.fetch).lock(_meta_of(target), is_on=is_on)

    try:
        return service.write(work)
    except Refused as error:
        raise WirebookError(Problem("not-a-resource", error.title, xid=xid)) from error


def read_capabilities(database: str) -> Mapping[str, Any]:
    """The capabilities of a registry. Raises: what `open_service` raises"""
    with (
        open_service(ServerOptions(database=database), must_exist=True) as service,
        service.database.reading() as session,
    ):
        return service.cache.load(session).capabilities


def reset_capabilities(database: str) -> tuple[str, ...]:
    """Restores the capabilities of a new registry. Returns the names of those that were different.

    Raises: what `open_service` raises
    """

    def work(session: Session) -> tuple[str, ...]:
        settings = service.cache.load(session)
        return Writing(session, settings, service.rules, service.rules.fetch).reset_capabilities()

    with open_service(ServerOptions(database=database), must_exist=True) as service:
        return service.write(work)


def _meta_of(target: RequestTarget) -> RequestTarget:
    return RequestTarget("meta", f"{target.path}/meta", target.group_type, target.group, target.type, target.resource)
