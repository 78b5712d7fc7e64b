"""Entities before and after a request.

Storage loads a `Snapshot` of the entities that a request names, this package changes it, and storage writes the
differences.

`Members` are the stored members of an entity, in order. They do not include ``self``, ``xid`` and ``isdefault``, which
depend on the view.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from wirebook.core.model.compiled import GroupType, Model, ResourceType

Members = dict[str, Any]


@dataclass(slots=True, eq=False)
class Entity:
    """The Registry, a Group, a meta or a Version. `before` is None if the request created it.

    `is_updated`: the request updated it, so it has the next epoch. `has_own_time`: the client sent `modifiedat`.
    `is_rewritten`: the stored text of its members changes although the members may be equal.
    """

    xid: str
    members: Members
    before: Members | None = None
    is_updated: bool = False
    has_own_time: bool = False
    is_rewritten: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the request created the entity."""
        return self.before is None

    @property
    def epoch(self) -> int:
        return int(self.members["epoch"])

    def mark_updated(self, now: str) -> None:
        """Increase the epoch, once per request, and set `modifiedat` unless the client sent it."""
        if self.before is not None and not self.is_updated:
            self.members["epoch"] = int(self.before["epoch"]) + 1
        if not self.has_own_time:
            self.members["modifiedat"] = now
        self.is_updated = True


@dataclass(slots=True, eq=False)
class Version(Entity):
    """A Version. `document` is its content: None if empty, `UnchangedDocument` if neither read nor changed.

    `document_before` is the document before the request.
    """

    document: bytes | UnchangedDocument | None = None
    document_before: bytes | UnchangedDocument | None = field(init=False)

    def __post_init__(self) -> None:
        self.document_before = self.document

    @property
    def id(self) -> str:
        return str(self.members["versionid"])


class UnchangedDocument:
    """An existing document that the request does not change. `read` loads it."""

    def __init__(self, read: Callable[[], bytes | None]) -> None:
        self.read = read


@dataclass(slots=True, eq=False)
class Group(Entity):
    """A Group. If it is `deleted`, everything in it is deleted, too."""

    type: GroupType = field(kw_only=True)
    id: str = field(kw_only=True)
    deleted: bool = False


@dataclass(slots=True, eq=False)
class Resource:
    """A Resource: its meta, and its Versions by id.

    `counter` is the number of the last generated versionid (see `SEMVER_COUNTER` for semantic versions).
    `versions_before` are the Versions before the request. A cross-reference has ``xref`` in `meta.members`; of its own
    former members, only epoch and createdat remain.
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
        """The xid of the target if the Resource is a cross-reference, else None."""
        return self.meta.members.get("xref")

    @property
    def default(self) -> str:
        """The id of the default Version."""
        return str(self.meta.members["defaultversionid"])

    @property
    def is_new(self) -> bool:
        return self.meta.is_new


@dataclass(frozen=True, slots=True)
class ResourceLocation:
    """Where a Resource is or will be: its Group, type and id."""

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
    """The members of a Resource's Versions by id; for a cross-reference (`xref`), those of its target's Versions."""

    xid: str
    plural: str
    xref: str | None
    versions: dict[str, Members]


class EntityReader(Protocol):
    """Reads entities outside the snapshot, in their state before the request.

    Cost: each method runs a fixed number of queries.
    """

    def resources_of(self, groups: Iterable[Group]) -> Iterator[Resource]:
        """Yield all Resources in these Groups, with their Versions."""

    def sources_of(self, xids: Collection[str]) -> Iterator[Resource]:
        """Yield the cross-references to these Resources, without Versions."""

    def versions_shown_by(self, xids: Collection[str]) -> Iterator[ShownVersions]:
        """Yield the Resources with these xids that have Versions, or whose target has."""

    def versions_shown_in(self, group: Group, plurals: Collection[str]) -> Generator[ShownVersions]:
        """Yield the Resources of these types in a Group that have Versions, or whose target has.

        The caller must close the generator.
        """

    def locked_in(self, groups: Iterable[Group]) -> Mapping[str, str]:
        """Return the Groups that contain read-only Resources: by the Group's xid, the xid of one such Resource."""

    def everything(self, plurals: Collection[str]) -> Iterator[Group | Resource]:
        """Yield the Groups of these types, then the Resources in them with their Versions."""


@dataclass(slots=True)
class Snapshot:
    """The registry before a request: the Registry and the Groups and Resources that the request names.

    Shape: `groups` by (type, lower-case id), `resources` by (Group's xid, type, lower-case id); a missing key means
    that the entity does not exist. `targets` are the targets of the cross-references among `resources`, by xid.
    """

    registry: RegistryEntity
    model: Model
    groups: dict[tuple[str, str], Group]
    resources: dict[tuple[str, str, str], Resource]
    reader: EntityReader
    targets: Mapping[str, Resource] = field(default_factory=dict)
