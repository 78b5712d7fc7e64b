"""Changes that only the operator of a registry may make, directly in its database.

Spec: core/spec.md#readonly-attribute; docs/registry.md#read-only-resources; docs/registry.md#default-capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.model.target import RequestTarget, parse_target
from wirebook.httpapi.handlers.registry_writer import RegistryWriter
from wirebook.httpapi.options import ServerOptions
from wirebook.httpapi.server import open_service
from wirebook.httpapi.service import Service
from wirebook.problems import Problem, WirebookError
from wirebook.problems.xregistry import Refused
from wirebook.storage.session import Session


def set_readonly(database: str, xid: str, *, is_on: bool) -> bool:
    """Make a Resource read-only for clients, or writable again, and return whether that changed anything.

    Raises: not-a-resource; what `open_service` raises
    """
    with open_service(ServerOptions(database=database), must_exist=True) as service:
        return lock_resource(service, xid, is_on=is_on)


def lock_resource(service: Service, xid: str, *, is_on: bool) -> bool:
    """Do the same as `set_readonly`, for an open service. Raises: not-a-resource"""

    def work(session: Session) -> bool:
        writer = _writer(service, session)
        target = parse_target(xid, writer.settings.model)
        if target.kind != "resource" or target.details:
            message = f"'{xid}' is not the xid of a Resource; write it as /groups/id/resources/id"
            raise WirebookError(Problem("not-a-resource", message))
        meta = RequestTarget(
            "meta", f"{target.path}/meta", target.group_type, target.group, target.type, target.resource
        )
        return writer.set_lock(meta, is_on=is_on)

    try:
        return service.write(work)
    except Refused as error:
        raise WirebookError(Problem("not-a-resource", error.title, xid=xid)) from error


def read_capabilities(database: str) -> Mapping[str, Any]:
    """Return the capabilities of a registry. Raises: what `open_service` raises"""
    with (
        open_service(ServerOptions(database=database), must_exist=True) as service,
        service.database.reading() as session,
    ):
        return service.settings.load(session).capabilities


def reset_capabilities(database: str) -> tuple[str, ...]:
    """Restore the capabilities of a new registry, and return the names of those that change.

    Raises: what `open_service` raises
    """
    with open_service(ServerOptions(database=database), must_exist=True) as service:
        return service.write(lambda session: _writer(service, session).reset_capabilities())


def _writer(service: Service, session: Session) -> RegistryWriter:
    return RegistryWriter(session, service.settings.load(session), service.context, service.context.fetch)
