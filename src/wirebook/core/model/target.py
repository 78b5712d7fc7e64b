"""Parse the path of a request: the entity or collection that it addresses.

    path     = "/" [ GROUPS [ "/" id [ "/" RESOURCES [ "/" id [ "$details" ] [ below ] ] ] ] ]
    below    = "/meta" / "/versions" [ "/" id [ "$details" ] ]

Spec: core/http.md#http-api-patterns; core/http.md#resource-metadata-vs-resource-document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wirebook.core.model.compiled import GroupType, Model, ResourceType
from wirebook.problems.xregistry import refused

DETAILS: Final = "$details"
KINDS: Final = ("registry", "groups", "group", "resources", "resource")


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """An entity or a collection. `kind` is registry, groups, group, resources, resource, meta, versions or version.

    Shape: `path` is the decoded request path. Types and ids are set if the path contains them. `details`: the path ends
    with ``$details``.
    """

    kind: str
    path: str
    group_type: GroupType | None = None
    group: str = ""
    type: ResourceType | None = None
    resource: str = ""
    version: str = ""
    details: bool = False

    @property
    def is_collection(self) -> bool:
        return self.kind in ("groups", "resources", "versions")

    @property
    def is_document(self) -> bool:
        """Whether the HTTP body is the document instead of metadata."""
        has = self.type is not None and self.type.hasdocument
        return self.kind in ("resource", "version") and has and not self.details

    @property
    def methods(self) -> tuple[str, ...]:
        """The HTTP methods that are available if entities are mutable. Documents cannot be patched."""
        every = METHODS[self.kind]
        return tuple(method for method in every if method != "PATCH") if self.is_document else every

    @property
    def xid(self) -> str:
        """The xid of the entity, or the path of the collection."""
        if self.group_type is None:
            return "/"
        parts = [self.group_type.plural, self.group]
        if self.type is not None:
            parts += [self.type.plural, self.resource]
        if self.kind in ("meta", "versions", "version"):
            parts += ["meta"] if self.kind == "meta" else ["versions", self.version]
        return "/" + "/".join(part for part in parts if part)

    @property
    def group_xid(self) -> str:
        assert self.group_type is not None
        return f"/{self.group_type.plural}/{self.group}"

    @property
    def resource_xid(self) -> str:
        assert self.type is not None
        return f"{self.group_xid}/{self.type.plural}/{self.resource}"


METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "registry": ("GET", "PATCH", "POST", "PUT"),
    "groups": ("DELETE", "GET", "PATCH", "POST"),
    "group": ("DELETE", "GET", "PATCH", "POST", "PUT"),
    "resources": ("DELETE", "GET", "PATCH", "POST"),
    "resource": ("DELETE", "GET", "PATCH", "POST", "PUT"),
    "meta": ("GET", "PATCH", "PUT"),
    "versions": ("DELETE", "GET", "PATCH", "POST"),
    "version": ("DELETE", "GET", "PATCH", "PUT"),
}
"""The HTTP methods of each kind, except for `OPTIONS` and `HEAD`, which is available wherever `GET` is."""


def parse_target(path: str, model: Model) -> RequestTarget:
    """Return what `path` (decoded, without query) addresses.

    Raises: bad_details, unknown_group_type, unknown_resource_type, not_found, bad_request
    """
    segments = path.strip("/").split("/") if path.strip("/") else []
    if "" in segments:
        raise refused("bad_request", path, error_detail="the path contains an empty segment")
    if "\0" in path:
        raise refused("bad_request", path, error_detail="the path contains the character U+0000")
    segments, details = _without_details(segments)
    if not segments:
        return RequestTarget("registry", path)
    group_type = model.groups.get(segments[0])
    if group_type is None:
        raise refused("unknown_group_type", f"/{segments[0]}", name=segments[0])
    type_ = _resource_type(group_type, segments)
    if len(segments) > 4:
        return _below_resource(path, segments, group_type, type_, details=details)
    group, resource = (*segments[1:2], "")[0], (*segments[3:4], "")[0]
    return RequestTarget(KINDS[len(segments)], path, group_type, group, type_, resource, details=details)


def _without_details(segments: list[str]) -> tuple[list[str], bool]:
    """Return the segments without the suffix ``$details``, which only Resources and Versions can have."""
    marked = [i for i, segment in enumerate(segments) if segment.endswith(DETAILS)]
    if not marked:
        return segments, False
    at = marked[0]
    is_entity = at == 3 or (at == 5 and segments[4] == "versions")
    if not is_entity or at != len(segments) - 1 or segments[at] == DETAILS:
        raise refused("bad_details", "/" + "/".join(segments[: at + 1]))
    return [*segments[:-1], segments[-1].removesuffix(DETAILS)], True


def _resource_type(group_type: GroupType, segments: Sequence[str]) -> ResourceType | None:
    if len(segments) < 3:
        return None
    type_ = group_type.resources.get(segments[2])
    if type_ is None:
        subject = "/" + "/".join(segments[:3])
        raise refused("unknown_resource_type", subject, group=group_type.plural, name=segments[2])
    return type_


def _below_resource(
    path: str, segments: list[str], group_type: GroupType, type_: ResourceType | None, *, details: bool
) -> RequestTarget:
    last, count = segments[4], len(segments)
    if (last, count) == ("meta", 5):
        return RequestTarget("meta", path, group_type, segments[1], type_, segments[3])
    if last == "versions" and count <= 6:
        kind, version = ("version", segments[5]) if count == 6 else ("versions", "")
        return RequestTarget(kind, path, group_type, segments[1], type_, segments[3], version, details)
    detail = f"An entity of '{segments[2]}' has only 'meta' and 'versions' below it."
    raise refused("not_found", path, detail=detail)
