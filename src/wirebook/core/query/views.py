"""Render entities and collections from ordered rows as chunks of JSON.

Spec: core/spec.md#json-serialization; core/spec.md#doc-flag; core/http.md#self-attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, Final
from urllib.parse import quote

import msgspec

from wirebook.core.entities.documents import inlined
from wirebook.core.entities.rows import GroupRow, ResourceRow, VersionRow, format_members, parse_members
from wirebook.core.entities.state import Members
from wirebook.core.model.compiled import GroupType, Model, ResourceType
from wirebook.core.model.predefined import SPECVERSION
from wirebook.core.model.target import DETAILS
from wirebook.core.query.cursor import RowSource
from wirebook.core.query.evaluation import FilterResult
from wirebook.core.query.filters import Level, collections
from wirebook.core.query.inline import Inline
from wirebook.core.query.shortself import short_path
from wirebook.core.query.specversions import rename_attributes
from wirebook.text.pointers import escape

NOT_IN_DOC: Final = (
    "formatvalidated",
    "formatvalidatedreason",
    "compatibilityvalidated",
    "compatibilityvalidatedreason",
)
"""Attributes that the document view omits."""


IN_QUERY: Final = "!'()*,/:;=?@~"
"""Characters of a filter that need no escape in a URL, besides letters, digits and ``-._``."""


_quoted: Final[Callable[[str], str]] = encode_basestring
"""Returns a string as JSON, like ``json.dumps`` with ``ensure_ascii=False``."""


@dataclass(slots=True)
class EntityRenderer:
    """Renders entities as JSON.

    `base` is the Registry's URL without a trailing slash. `root` is the xid or collection path of the response;
    pointers in the document view are relative to it. `root_level` is the level of `root`. `rows` opens one cursor per
    level. `specversion` selects the names of attributes.
    """

    model: Model
    base: str
    root: str
    inline: Inline
    doc: bool = False
    binary: bool = False
    shortself: bool = False
    filter_result: FilterResult | None = None
    rows: RowSource | None = None
    root_level: Level = ()
    specversion: str = SPECVERSION
    _cursors: dict[Level, Any] = field(default_factory=dict)

    # -- URLs -----------------------------------------------------------------------------------------------------

    def url(self, xid: str, *, details: bool = False, inside: bool = True) -> str:
        """Return the URL of an entity; in the document view, a pointer if the entity is `inside` the response."""
        if self.doc and inside:
            below = xid[len(self.root) :] if self.root != "/" else xid
            return "#/" + "/".join(escape(part) for part in below.strip("/").split("/"))
        return f"{self.base}{xid}{DETAILS if details else ''}"

    # -- entities -------------------------------------------------------------------------------------------------

    def registry(
        self, members: Members, counts: Mapping[str, int], special: Mapping[str, Any], *, bare: bool = False
    ) -> Iterator[str]:
        """Yield the Registry. `special` contains capabilities, model and model source, rendered if they are inlined.

        `bare`: render its collections only (flag `collections`).
        """
        yield "{"
        if not bare:
            ids = f'"specversion":{_quoted(self.specversion)},"registryid":{_quoted(members["registryid"])},'
            rest = {name: value for name, value in members.items() if name != "registryid"}
            yield ids + self._self("/", self.url("/"), 0) + _comma(format_members(rest))
            for name, value in special.items():
                if name in self.inline:
                    yield f",{_quoted(name)}:{format_json(value)}"
        for i, plural in enumerate(self.model.groups):
            count = self._count((plural,), 0, counts.get(plural, 0))
            yield from self._collection((), "/", plural, count, 0, first=bare and i == 0)
        yield "}"

    def group(self, row: GroupRow, type_: GroupType, *, bare: bool = False) -> Iterator[str]:
        """Yield a Group. `bare`: render its collections only (flag `collections`)."""
        xid = f"/{type_.plural}/{row.id}"
        head = "" if bare else self._head(type_.id_name, row, xid, self.url(xid)) + _comma(row.text)
        yield "{" + head
        level: Level = (type_.plural,)
        first = not head
        for plural in type_.resources:
            count = self._count((*level, plural), row.key, row.counts.get(plural, 0))
            yield from self._collection(level, xid, plural, count, row.key, first=first)
            first = False
        yield "}"

    def resource(self, row: ResourceRow, group: GroupType, type_: ResourceType, group_xid: str) -> Iterator[str]:
        """Yield a Resource: its default Version with the Resource's ids, then `metaurl`, `meta` and `versions`."""
        xid = f"{group_xid}/{type_.plural}/{row.id}"
        level: Level = (group.plural, type_.plural)
        inline = self.inline_at(level)
        text = "{" + self._resource_head(row, type_, level, xid)
        text += f',"metaurl":{_quoted(self.url(f"{xid}/meta", inside="meta" in inline))}'
        if "meta" in inline:
            has_default = "versions" in inline and (
                self.filter_result is None
                or (row.version is not None and self.filter_result.has((*level, "versions"), row.version.key, row.key))
            )
            text += f',"meta":{self.meta(row, type_, xid, has_default=has_default)}'
        if row.version is None or (self.doc and row.xref):
            self._skip_rows(level, row.key)
            yield text + "}"
            return
        count = self._count((*level, "versions"), row.key, row.count)
        if "versions" not in inline:
            yield f"{text},{self._counted(level, xid, 'versions', count, row.key)}}}"
            return
        yield text
        yield from self._collection(level, xid, "versions", count, row.key, first=False, row=row)
        yield "}"

    def _resource_head(self, row: ResourceRow, type_: ResourceType, level: Level, xid: str) -> str:
        self_ = self.url(xid, details=type_.hasdocument)
        if self.doc or row.version is None:
            return self._head(type_.id_name, row, xid, self_)
        ids = f'{_quoted(type_.id_name)}:{_quoted(row.id)},"versionid":{_quoted(row.version.id)},'
        return ids + self._self(xid, self_, row.key) + self._version_body(row.version, type_, level, is_default=True)

    def meta(self, row: ResourceRow, type_: ResourceType, xid: str, *, has_default: bool) -> str:
        """Return the meta of a Resource; for a cross-reference, the target's meta with the Resource's own ids.

        `has_default`: the response contains the default Version.
        """
        own = f"{xid}/meta"
        head = "{" + self._head(type_.id_name, row, own, self.url(own))
        if row.xref:
            head += f',"xref":{_quoted(row.xref)}'
        if row.version is None or (self.doc and row.xref):
            return head + "}"
        version = f"{xid}/versions/{row.default}"
        url = self.url(version, details=type_.hasdocument, inside=has_default)
        sticky = "true" if row.sticky else "false"
        tail = f',"defaultversionid":{_quoted(row.default)},"defaultversionurl":{_quoted(url)}'
        return f'{head}{_comma(row.text)}{tail},"defaultversionsticky":{sticky}}}'

    def version(
        self, row: VersionRow, type_: ResourceType, level: Level, resource_xid: str, *, is_default: bool
    ) -> str:
        """Return a Version as part of the Resource `resource_xid`, which may be a cross-reference to its owner."""
        xid = f"{resource_xid}/versions/{row.id}"
        id_ = resource_xid.rpartition("/")[2]
        ids = f'{{{_quoted(type_.id_name)}:{_quoted(id_)},"versionid":{_quoted(row.id)},'
        self_ = self._self(xid, self.url(xid, details=type_.hasdocument), row.parent)
        return ids + self_ + self._version_body(row, type_, level, is_default=is_default) + "}"

    def _version_body(self, row: VersionRow, type_: ResourceType, level: Level, *, is_default: bool) -> str:
        tail = row.tail
        if self.doc and "validated" in tail:
            tail = format_members({name: v for name, v in parse_members(tail).items() if name not in NOT_IN_DOC})
        head, tail = (
            rename_attributes(self.specversion, row.head, type_),
            rename_attributes(self.specversion, tail, type_),
        )
        body = f'{_comma(head)},"isdefault":{"true" if is_default else "false"}{_comma(tail)}'
        is_inlined = type_.hasdocument and type_.singular in self.inline_at(level)
        if not is_inlined or f'"{type_.singular}url":' in row.tail:
            return body
        name, text = inlined(row.document, row.contenttype, type_, binary=self.binary)
        return f"{body},{_quoted(name)}:{text}"

    def _head(self, id_name: str, row: GroupRow | ResourceRow, xid: str, self_: str) -> str:
        return f"{_quoted(id_name)}:{_quoted(row.id)},{self._self(xid, self_, row.key)}"

    def _self(self, xid: str, self_: str, key: int) -> str:
        """Return `self`, `shortself` and `xid` of an entity; `key` is the row key of its Group or Resource."""
        short = f',"shortself":{_quoted(self.base + short_path(xid, key))}' if self.shortself and not self.doc else ""
        return f'"self":{_quoted(self_)}{short},"xid":{_quoted(xid)}'

    # -- collections ----------------------------------------------------------------------------------------------

    def inline_at(self, level: Level) -> Inline:
        """Return what is inlined in the entities of a level."""
        tree = self.inline
        for name in level[len(self.root_level) :]:
            tree = tree[name]
        return tree

    def _collection(
        self,
        level: Level,
        xid: str,
        plural: str,
        count: int,
        key: int,
        *,
        first: bool,
        row: Any = None,
    ) -> Iterator[str]:
        comma = "" if first else ","
        if plural not in self.inline_at(level):
            yield comma + self._counted(level, xid, plural, count, key)
            return
        url = self.url(_path(xid, plural)) + ("" if self.doc else self._query(level, plural, count, key))
        yield f"{comma}{_quoted(f'{plural}url')}:{_quoted(url)},{_quoted(plural)}:{{"
        yield from self.collection_members((*level, plural), xid, key, row)
        yield f"}},{_quoted(f'{plural}count')}:{count}"

    def _counted(self, level: Level, xid: str, plural: str, count: int, key: int) -> str:
        """Return the URL and count of a collection that is not inlined."""
        url = self.url(_path(xid, plural), inside=False) + self._query(level, plural, count, key)
        return f'"{plural}url":{_quoted(url)},"{plural}count":{count}'

    def _query(self, level: Level, plural: str, count: int, key: int) -> str:
        """Return the residual filter for the URL of a collection."""
        if self.filter_result is None:
            return ""
        texts = self.filter_result.residual(level, plural, key) if count else ["excludeall"]
        return "".join(f"{'&' if i else '?'}filter={quote(text, safe=IN_QUERY)}" for i, text in enumerate(texts))

    def _count(self, level: Level, key: int, count: int) -> int:
        return count if self.filter_result is None else self.filter_result.count(level, key, count)

    def collection_members(self, level: Level, xid: str, key: int, owner: Any) -> Iterator[str]:
        """Yield the entities of a collection as members of a JSON object.

        `owner` is the row that contains the collection, `key` the key of that row.
        """
        first = True
        for row in self._cursor(level).of(key):
            if self.filter_result is not None and not self.filter_result.has(level, row.key, key):
                self._skip_rows(level, row.key)
                continue
            yield f"{'' if first else ','}{_quoted(row.id)}:"
            first = False
            yield from self.entity(level, row, xid, owner)

    def _skip_rows(self, level: Level, key: int) -> None:
        """Advance the cursors past the rows below an entity that is not rendered."""
        for plural in collections(level, self.model):
            if plural in self.inline_at(level):
                inner = (*level, plural)
                for row in self._cursor(inner).of(key):
                    self._skip_rows(inner, row.key)

    def _cursor(self, level: Level) -> Any:
        assert self.rows is not None
        if level not in self._cursors:
            opening = (self.rows.groups, self.rows.resources, self.rows.versions)[len(level) - 1]
            self._cursors[level] = opening(level)
        return self._cursors[level]

    def entity(self, level: Level, row: Any, owner_xid: str, owner: Any = None) -> Iterator[str]:
        """Yield one entity of a collection. `owner_xid` and `owner` are the xid and row that contain the collection."""
        group = self.model.groups[level[0]]
        if len(level) == 1:
            yield from self.group(row, group)
        elif len(level) == 2:
            yield from self.resource(row, group, group.resources[level[1]], owner_xid)
        else:
            is_default = owner is not None and owner.default == row.id
            yield self.version(row, group.resources[level[1]], level, owner_xid, is_default=is_default)


def _path(xid: str, plural: str) -> str:
    return f"{'' if xid == '/' else xid}/{plural}"


def _comma(text: str) -> str:
    return f",{text}" if text else ""


def format_json(value: Mapping[str, Any]) -> str:
    """Return a JSON object as text."""
    return msgspec.json.encode(value).decode()
