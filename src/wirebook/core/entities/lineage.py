"""Set the ancestors of Versions after they are written or deleted, and prune surplus Versions.

Spec: core/spec.md#ancestorid-attribute; core/model.md#groupsstringresourcesstringmaxversions.
"""

from __future__ import annotations

from collections.abc import Collection

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.state import Resource, Version
from wirebook.core.entities.versions import MODES, Link, find_cycle, prune_order, roots
from wirebook.problems.xregistry import refused


def links_of(resource: Resource) -> dict[str, Link]:
    """Return the lineage of a Resource."""
    links = {}
    for id_, version in resource.versions.items():
        members = version.members
        ancestor = members.get("ancestorid") or None
        links[id_] = Link(id_, members["createdat"], members["modifiedat"], ancestor, version.is_new)
    return links


def only_version(resource: Resource) -> Version | None:
    """Return the Version of a Resource that has exactly one, else None.

    In every versionmode, a single Version is the newest and its own ancestor.
    """
    return next(iter(resource.versions.values())) if len(resource.versions) == 1 else None


def relink(change_set: ChangeSet, resource: Resource, gone: Collection[str] = ()) -> None:
    """Set the ancestor of every Version by the versionmode of its type.

    A Version whose ancestor is missing becomes a root if the ancestor existed before the request or if its id is in
    `gone`. Any other missing ancestor is an error.
    Raises: unknown_id, ancestor_circular_reference, multiple_roots
    """
    mode = resource.type.versionmode
    only = only_version(resource)
    if only and not only.members.get("ancestorid"):
        _set_ancestor(change_set, only, only.id, keeps_time=mode == "modifiedat")
        return
    links = links_of(resource)
    if mode == "manual":
        for id_, link in links.items():
            if link.ancestor is None or link.ancestor in links:
                continue
            if link.ancestor not in resource.versions_before and link.ancestor not in gone:
                raise refused("unknown_id", resource.xid, singular="version", id=link.ancestor)
            links[id_] = Link(id_, link.createdat, link.modifiedat, id_)  # a child of a deleted Version is a root
    for id_, ancestor in MODES[mode].chain(links).items():
        _set_ancestor(change_set, resource.versions[id_], ancestor, keeps_time=mode == "modifiedat")
    links = links_of(resource)
    if ancestors := find_cycle(links):
        raise refused("ancestor_circular_reference", resource.xid, list=", ".join(ancestors))
    if resource.type.singleversionroot and len(roots(links)) > 1:
        raise refused("multiple_roots", resource.xid, plural=resource.type.plural)


def _set_ancestor(change_set: ChangeSet, version: Version, ancestor: str, *, keeps_time: bool) -> None:
    if version.members.get("ancestorid") == ancestor:
        return
    was_set = bool(version.members.get("ancestorid"))
    version.members["ancestorid"] = ancestor
    if was_set and not version.is_new and not version.is_updated:
        # Reading: if modifiedat orders the Versions, a new ancestor must not change it.
        version.has_own_time = version.has_own_time or keeps_time
        version.mark_updated(change_set.now)


def prune(change_set: ChangeSet, resource: Resource) -> bool:
    """Delete the oldest Versions beyond `maxversions`. Return whether there were any.

    The default Version is kept. If `maxversions` is 1, the newest created Version (else the newest of all) is kept.
    Raises: multiple_roots
    """
    limit = resource.type.maxversions
    if not limit or len(resource.versions) <= limit:
        return False
    mode = MODES[resource.type.versionmode]
    links = links_of(resource)
    new = [link for id_, link in links.items() if id_ not in resource.versions_before]
    keep = mode.newest(new or links.values()).versionid if limit == 1 else resource.default
    for id_ in prune_order(mode, links, keep, limit):
        del resource.versions[id_]
    relink(change_set, resource, gone=links)
    return True
