"""Helpers that compare responses as a whole, without what differs between runs."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.httpapi.conftest import BASE, Client

TIME = re.compile(r'"(\d{4}-\d\d-\d\dT[0-9:.]+)Z"')


def seen(value: Any) -> Any:
    """JSON with relative URLs, and with ``now`` for timestamps of the last hour."""
    text = json.dumps(value).replace(f'"{BASE}', '"')
    return json.loads(TIME.sub(lambda time: '"now"' if _is_now(time[1]) else time[0], text))


def _is_now(text: str) -> bool:
    age = datetime.now(UTC) - datetime.fromisoformat(text[:26] if "." in text else text).replace(tzinfo=UTC)
    return timedelta() - timedelta(seconds=5) < age < timedelta(hours=1)


def version_of(xid: str, id_: str, **members: Any) -> dict[str, Any]:
    """A Version as it is shown, of a type without documents; `members` are those that are not as they are at first."""
    own = f"{xid}/versions/{id_}"
    return _entity(xid, id_, {"self": own, "xid": own}, members)


def resource_of(xid: str, id_: str = "1", versionscount: int = 1, **members: Any) -> dict[str, Any]:
    """A Resource as it is shown, of a type without documents, with `id_` as its default Version."""
    own = {"self": xid, "xid": xid}
    tail = {"metaurl": f"{xid}/meta", "versionsurl": f"{xid}/versions", "versionscount": versionscount}
    return _entity(xid, id_, own, members) | tail


def _entity(xid: str, id_: str, own: dict[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    _, _, _, plural, resource = xid.split("/")
    first = {"epoch": 1, "isdefault": True, "createdat": "now", "modifiedat": "now", "ancestorid": id_}
    return {f"{plural[:-1]}id": resource, "versionid": id_, **own, **first, **members}


def meta_of(xid: str, default: str = "1", **members: Any) -> dict[str, Any]:
    """A meta as it is shown, of a type without documents."""
    _, _, _, plural, resource = xid.split("/")
    own = {"self": f"{xid}/meta", "xid": f"{xid}/meta", "epoch": 1, "createdat": "now", "modifiedat": "now"}
    choice = {"defaultversionid": default, "defaultversionurl": f"{xid}/versions/{default}"}
    first = {"readonly": False, **choice, "defaultversionsticky": False}
    return {f"{plural[:-1]}id": resource, **own, **first, **members}


def lineage(registry: Client, xid: str) -> dict[str, str]:
    """The ancestor of each Version."""
    return {id_: version["ancestorid"] for id_, version in registry.get(f"{xid}/versions").json.items()}


def default_of(registry: Client, xid: str) -> tuple[str, bool]:
    """The default Version and whether it is sticky."""
    meta = registry.get(f"{xid}/meta").json
    return meta["defaultversionid"], meta["defaultversionsticky"]


def refuses(registry: Client, method: str, url: str, content: Any, code: str, **headers: str) -> dict[str, Any]:
    """Send a request that must be rejected without any change, and return the error."""
    before = registry.get("/export").body, registry.get("/?inline=*").body
    reply = registry.send(method, url, content, **headers)
    assert reply.error[1] == code, (method, url, content, reply.json)
    assert (registry.get("/export").body, registry.get("/?inline=*").body) == before
    error: dict[str, Any] = {"status": reply.status, **reply.json}
    return error
