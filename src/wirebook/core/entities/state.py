"""What a request found and what becomes of it: entities with their members before and after.

Storage makes a `Snapshot` of what a request touches; rules change it; storage then writes what differs.

Members are those that are stored, in order: no ``self``, ``xid`` or ``isdefault``, which depend on where one looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from wirebook.core.model.compiled import GroupType, Model, ResourceType

Members = dict[str, Any]


@dataclass(slots=True, eq=False)
class Entity:
    """The Registry, a Group, a meta or a Version. `before` is None for one that the request made.

    `is_rewritten`: its members are written differently than before, though they may be equal.
    """

    xid: str
    members: Members
    before: Members | None = None
    is_updated: bool = False
    has_own_time: bool = False
    is_rewritten: bool = False

    @property
    def is_new(self) -> bool:
        return self.before is None

    @property
    def epoch(self) -> int:
        return int(self.members["epoch"])

    def mark_updated(self, now: str) -> None:
        """An update: the next epoch, once in a request, and the time of it, unless the client gave one."""
        if self.before is not None and not self.is_updated:
            self.members["epoch"] = int(self.before["epoch"]) + 1
        if not self.has_own_time:
            self.members["modifiedat"] = now
        self.is_updated = True


@dataclass(slots=True, eq=False)
class Version(Entity):
    """A Version. `document` is its bytes: None where they are empty, `UnchangedDocument` where they were not read nor
    changed.

    `document_before` is the document that the request found.
    """

    document: bytes | UnchangedDocument | None = None
    document_before: bytes | UnchangedDocument | None = field(init=False)

    def __post_init__(self) -> None:
        self.document_before = self.document

    @property
    def id(self) -> str:
        return str(self.members["versionid"])


class UnchangedDocument:
    """A document that stays as it is, and of which only that it is there is known."""

    def __init__(self, read: Callable[[], bytes | None]) -> None:
        self.read = read


@dataclass(slots=True, eq=False)
class Group(Entity):
    """A Group. `deleted` ones are gone with everything in them."""

    type: GroupType = field(kw_only=True)
    id: str = field(kw_only=True)
    deleted: bool = False


@dataclass(slots=True, eq=False)
class Resource:
    """A Resource: its meta, its Versions by id, the number of the last id that was made for one.

    `meta.members` of a cross-reference have ``xref``, and of what it was before only epoch and createdat.
    `versions_before` are the
    Versions that the request found.
    """

    xid: str
    type: ResourceType
    group: Group
    id: str
    meta: Entity
    versions: dict[str, Version] = field(default_factory=dict)
    counter: int = 0
    versions_before: Mapping[str, Version] = field(default_factory=dict)
    deleted: bool = False

    @property
    def xref(self) -> str | None:
        return self.meta.members.get("xref")

    @property
    def default(self) -> str:
        return str(self.meta.members["defaultversionid"])

    @property
    def is_new(self) -> bool:
        return self.meta.is_new


@dataclass(frozen=True, slots=True)
class ResourceLocation:
    """Where a Resource is, or is to be: its Group, its type and its id."""

    group: Group
    type: ResourceType
    id: str

    @property
    def xid(self) -> str:
        return f"{self.group.xid}/{self.type.plural}/{self.id}"


@dataclass(slots=True, eq=False)
class RegistryEntity(Entity):
    """The Registry, without its capabilities and its model."""


class ShownVersions(NamedTuple):
    """The Versions that a Resource shows, by id: of a cross-reference (`xref`) those of its target."""

    xid: str
    plural: str
    xref: str | None
    versions: dict[str, Members]


class EntityReader(Protocol):
    """What a request may have to look at beyond its snapshot, as it was before; each a fixed number of queries."""

    def resources_of(self, groups: Iterable[Group]) -> Iterator[Resource]:
        """All Resources of Groups, with their Versions."""

    def sources_of(self, xids: Collection[str]) -> Iterator[Resource]:
        """The cross-references to these Resources, without Versions."""

    def versions_shown_by(self, xids: Collection[str]) -> Iterator[ShownVersions]:
        """The Resources with these xids that have Versions to show."""

    def versions_shown_in(self, group: Group, plurals: Collection[str]) -> Generator[ShownVersions]:
        """The Resources of these types in a Group that have Versions to show, one after the other: to be closed."""

    def locked_in(self, groups: Iterable[Group]) -> Mapping[str, str]:
        """The Groups that hold a read-only Resource, by xid, with the xid of one."""

    def everything(self, plurals: Collection[str]) -> Iterator[Group | Resource]:
        """The Groups of these types, and then the Resources in them with their Versions."""


@dataclass(slots=True)
class Snapshot:
    """What a request found: the Registry, and the Groups and Resources that it names.

    Shape: `groups` by (type, id in lower case), `resources` by (Group's xid, type, id in lower case); what is not there
    does not exist. `targets` are the Resources that cross-references in it lead to, by xid.
    """

    registry: RegistryEntity
    model: Model
    groups: dict[tuple[str, str], Group]
    resources: dict[tuple[str, str, str], Resource]
    reader: EntityReader
    targets: Mapping[str, Resource] = field(default_factory=dict)
