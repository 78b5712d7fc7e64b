"""Parse the flags of a request: the query parameters that the registry offers.

Spec: core/http.md#request-flags--query-parameters; core/spec.md#request-flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wirebook.core.dotpath import BadPath, DotPath, Item, PathMember, parse_dotpath
from wirebook.core.model.capabilities import IGNORES, without_patch
from wirebook.core.model.compiled import Model
from wirebook.core.model.predefined import SPECVERSION
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.filters import (
    COMPLEX,
    Filter,
    attributes_of,
    collections,
    folded,
    level_of,
    may_have,
    parse_filter,
    type_at,
)
from wirebook.core.query.inline import NOTHING, SPECIAL, Inline, list_items, parse_inline
from wirebook.problems.xregistry import refused

Query = Mapping[str, Sequence[str]]
WRITE_ONLY: Final = frozenset({"epoch", "ignore", "setdefaultversionid"})
"""Flags that have no effect on the response to a GET."""


@dataclass(frozen=True, slots=True)
class Sort:
    """The attribute by which a collection is sorted; entities with equal values are sorted by id."""

    path: DotPath
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Flags:
    """The parsed flags of a request.

    Shape: `filter` is None without a filter, () if everything is excluded. `default` is the value of
    setdefaultversionid, "" if absent. `epoch` is set for a DELETE only.
    """

    inline: Inline
    filter: Filter | None = None
    sort: Sort | None = None
    binary: bool = False
    collections: bool = False
    doc: bool = False
    ignore: frozenset[str] = frozenset()
    default: str = ""
    epoch: int | None = None
    specversion: str = SPECVERSION


NO_FLAGS: Final = Flags(NOTHING)


def parse_flags(
    query: Query, target: RequestTarget, method: str, model: Model, capabilities: Mapping[str, Any]
) -> Flags:
    """Return the flags of a request; flags that the registry does not offer are ignored.

    Raises: bad_defaultversionid, bad_filter, bad_flag, bad_ignore, bad_inline, bad_sort, inline_noninlineable,
    invalid_attribute, not_available, sort_noncollection, unsupported_specversion
    """
    if not query:
        return NO_FLAGS
    offered = {name: query[name] for name in capabilities["flags"] if name in query}
    shown = replace(target, kind="version") if (method, target.kind) == ("POST", "resource") else target
    ignore = _ignore(offered, target, capabilities)
    collections = "collections" in offered
    inline = parse_inline(offered.get("inline"), shown, model, everything=collections)
    for name in SPECIAL:
        if name in inline and name not in capabilities["available"]:
            raise refused("not_available", f"/{name}")
    if collections and target.kind not in ("registry", "group"):
        detail = "The flag 'collections' is allowed for the Registry and for a single Group only."
        raise refused("bad_flag", target.path, flag="collections", detail=detail)
    return Flags(
        inline,
        sort=_sort(offered, target, method, model),
        specversion=_specversion(offered, target, method, capabilities),
        default=_default(offered, target, method),
        filter=parse_filter(offered.get("filter", ()), shown, model),
        epoch=_epoch(offered, target, method),
        binary="binary" in offered,
        collections=collections,
        doc="doc" in offered,
        ignore=ignore,
    )


def _specversion(offered: Query, target: RequestTarget, method: str, capabilities: Mapping[str, Any]) -> str:
    """Return the specversion of the response. The patch number is ignored in comparisons, a suffix is not.

    A former specversion is allowed for GET and HEAD responses with metadata only. Raises: unsupported_specversion
    """
    sent = (offered.get("specversion") or ("",))[0]
    known = capabilities["specversions"]
    for version in known:
        if not sent or without_patch(sent) == without_patch(version):
            chosen = version if sent else SPECVERSION
            is_shown = method in ("GET", "HEAD") and ("doc" in offered or not target.is_document)
            if chosen == SPECVERSION or is_shown:
                return str(chosen)
    raise refused("unsupported_specversion", target.path, specversion=sent, list=",".join(known))


def _ignore(offered: Query, target: RequestTarget, capabilities: Mapping[str, Any]) -> frozenset[str]:
    allowed = capabilities["ignores"]
    if "ignore" not in offered:
        return frozenset()
    texts = list_items(offered["ignore"])
    for text in texts:
        if text != "*" and text not in allowed:
            why = (
                f"it is not one of: {', '.join(allowed)}" if text not in IGNORES else "this registry does not offer it"
            )
            raise refused("bad_ignore", target.path, value=text, error_detail=why)
    return frozenset(allowed if "*" in texts else texts)


def _sort(offered: Query, target: RequestTarget, method: str, model: Model) -> Sort | None:
    if "sort" not in offered:
        return None
    if not target.is_collection or method == "DELETE":
        raise refused("sort_noncollection", target.path)
    text = offered["sort"][0]
    name, _, order = text.partition("=")
    try:
        if order not in ("", "asc", "desc") or len(offered["sort"]) > 1:
            raise BadPath(f"'{order}' is neither asc nor desc" if order else "the flag occurs twice", len(name) + 1)
        path = parse_dotpath(name)
    except BadPath as error:
        raise refused("bad_sort", target.path, value=text, error_detail=str(error)) from None
    path = folded(path)
    if why := _unsortable(path, target, model):
        raise refused("bad_sort", target.path, value=text, error_detail=why)
    return Sort(path, order == "desc")


def _unsortable(path: DotPath, target: RequestTarget, model: Model) -> str | None:
    """Return why a collection cannot be sorted by the attribute at `path`, or None."""
    if not all(isinstance(step, (PathMember, Item)) for step in path):
        return "a path to sort by cannot contain a wildcard"
    level, name = level_of(target), path[0].name if isinstance(path[0], PathMember) else ""
    attributes = attributes_of(level, model)
    if name in collections(level, model) or name == "meta":
        return f"'{name}' is not an attribute of the entities in the collection"
    if not may_have(attributes, name):
        return f"the entities have no attribute '{name}'"
    type_ = type_at(attributes, path)
    return f"it is of type {type_}, which has no order" if type_ in COMPLEX else None


WRITES_ONE: Final = ("resource", "meta", "versions", "version")


def _default(offered: Query, target: RequestTarget, method: str) -> str:
    if "setdefaultversionid" not in offered:
        return ""
    values = offered["setdefaultversionid"]
    if len(values) > 1 or not values[0]:
        why = "the flag occurs twice" if len(values) > 1 else "the flag has no value"
        raise refused("bad_defaultversionid", target.path, value=",".join(values) or '""', error_detail=why)
    if method in ("GET", "HEAD"):
        return ""
    may_ask = (method, target.kind) in (("POST", "resource"), ("POST", "versions"), ("PATCH", "versions"))
    gone = method == "DELETE" and target.kind in ("resource", "resources")
    if target.kind not in WRITES_ONE or gone or (values[0] == "request" and not may_ask):
        raise refused("bad_flag", target.path, flag="setdefaultversionid")
    return values[0]


def _epoch(offered: Query, target: RequestTarget, method: str) -> int | None:
    text = (offered.get("epoch") or ("",))[0]
    if not text or method != "DELETE":
        return None
    if not text.isascii() or not text.isdigit():
        why = f"'{text[:40]}' is not an unsigned integer"
        raise refused("invalid_attribute", target.xid, name="epoch", error_detail=why)
    return int(text[:40])
