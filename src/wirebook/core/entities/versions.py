"""Lineage of the Versions of a Resource: ancestors, the newest and the oldest Version.

There is one `VersionMode` for each `versionmode`. A lineage maps each versionid to its `Link`.

Spec: core/model.md#groupsstringresourcesstringversionmode; core/spec.md#ancestorid-attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ["MODES", "Lineage", "Link", "VersionMode", "find_cycle", "prune_order", "roots"]


@dataclass(frozen=True, slots=True)
class Link:
    """One Version in a lineage. If `ancestor` is None, the mode sets it; a root is its own ancestor."""

    versionid: str
    createdat: str
    modifiedat: str
    ancestor: str | None
    is_new: bool = False

    @property
    def is_root(self) -> bool:
        return self.ancestor == self.versionid


Lineage = Mapping[str, Link]
Rank = Callable[[Link], Any]


def next_number(counter: int, taken: Collection[str]) -> tuple[str, int]:
    """Return the next number that is not yet a versionid, as the id and as the new counter.

    Spec: core/spec.md#version-ids
    """
    used = {id_.lower() for id_ in taken}
    number = 0 if counter & SEMVER_COUNTER else counter
    while str(number := number + 1) in used:
        pass
    return str(number), number


@dataclass(frozen=True, slots=True)
class VersionMode:
    """The algorithm of a versionmode: `chain` assigns every Version its ancestor, `newest` and `oldest` select one.

    `next_id` returns the id of a new Version and the Resource's new counter, from the counter and the existing ids.
    `id_fault` returns why a new Version cannot have an id, or None.
    """

    chain: Callable[[Lineage], dict[str, str]]
    newest: Callable[[Iterable[Link]], Link]
    oldest: Callable[[Iterable[Link]], Link]
    next_id: Callable[[int, Collection[str]], tuple[str, int]] = next_number
    id_fault: Callable[[str], str | None] = lambda _: None


def roots(lineage: Lineage) -> list[str]:
    """Return the ids of the root Versions."""
    return [link.versionid for link in lineage.values() if link.is_root]


def find_cycle(lineage: Lineage) -> list[str]:
    """Return the ids of the Versions in one cycle of ancestors, or an empty list."""
    known: set[str] = set()
    for start in lineage:
        walked: dict[str, None] = {}
        current = start
        while current not in known and current not in walked:
            walked[current] = None
            ancestor = lineage[current].ancestor
            if ancestor is None or ancestor == current or ancestor not in lineage:
                break
            current = ancestor
        else:
            if current in walked:
                names = list(walked)
                return sorted(names[names.index(current) :])
        known.update(walked)
    return []


def prune_order(mode: VersionMode, lineage: Lineage, keep: str | None, count: int) -> list[str]:
    """Return the ids of the Versions to delete, in order, so that `count` remain; `keep` is never deleted.

    Each is the oldest root that remains after the previous deletions or, if `keep` is the only root, the oldest other
    Version. Children of a deleted Version become roots.
    """
    left = dict(lineage)
    gone: list[str] = []
    while len(left) > count:
        candidates = [link for link in left.values() if link.versionid != keep]
        oldest = mode.oldest([link for link in candidates if link.is_root] or candidates).versionid
        del left[oldest]
        gone.append(oldest)
        for name, link in left.items():
            if link.ancestor == oldest:
                left[name] = replace(link, ancestor=name)
    return gone


# -- manual -------------------------------------------------------------------------------------------------------


def _by_creation(link: Link) -> tuple[str, str]:
    return instant_key(link.createdat), link.versionid.lower()


def _newest_leaf(links: Iterable[Link]) -> Link:
    links = list(links)
    ancestors = {link.ancestor for link in links if not link.is_root}
    return max([link for link in links if link.versionid not in ancestors] or links, key=_by_creation)


def _oldest_root(links: Iterable[Link]) -> Link:
    links = list(links)
    return min([link for link in links if link.is_root] or links, key=_by_creation)


def _chain_unset(lineage: Lineage) -> dict[str, str]:
    """Return the ancestor of each Version. Versions without one are appended as a chain to the newest Version.

    Existing Versions without an ancestor come first, by (createdat, versionid); new ones follow, by versionid.
    """
    linked = {name: link for name, link in lineage.items() if link.ancestor is not None}
    unset = [link for link in lineage.values() if link.ancestor is None]
    existing = sorted((link for link in unset if not link.is_new), key=_by_creation)
    new = sorted((link for link in unset if link.is_new), key=lambda link: link.versionid.lower())
    # Reading: descendants of existing Versions, and of the first new one, are not candidates for their ancestor.
    after = _descendants([link.versionid for link in (*existing, *new[:1])], linked)
    before = [link for name, link in linked.items() if name not in after]
    newest = _newest_leaf(before).versionid if before else None
    for link in (*existing, *new):
        linked[link.versionid] = replace(link, ancestor=newest or link.versionid)
        newest = link.versionid
    return {name: link.ancestor or name for name, link in linked.items()}


def _descendants(starts: Iterable[str], lineage: Lineage) -> set[str]:
    children: dict[str | None, list[str]] = {}
    for link in lineage.values():
        children.setdefault(link.ancestor, []).append(link.versionid)
    descendants: set[str] = set()
    below = list(starts)
    while below:
        new = [child for child in children.get(below.pop(), ()) if child not in descendants]
        descendants.update(new)
        below += new
    return descendants


# -- ordered chains -----------------------------------------------------------------------------------------------


def _ordered(rank: Rank, **ids: Any) -> VersionMode:
    """Return a mode in which all Versions form one chain, from the lowest rank to the highest."""

    def chain(lineage: Lineage) -> dict[str, str]:
        names = [link.versionid for link in sorted(lineage.values(), key=rank)]
        return dict(zip(names, names[:1] + names[:-1], strict=True))

    return VersionMode(chain, lambda links: max(links, key=rank), lambda links: min(links, key=rank), **ids)


def _by_change(link: Link) -> tuple[str, str]:
    return instant_key(link.modifiedat), link.versionid.lower()


LENIENT_SEMVER: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?\Z", re.ASCII)
"""Ids that are ordered as semantic versions. Versions from before the type had this mode may have such ids."""

_NUMBER: Final = r"(?:0|[1-9]\d*)"
_IDENTIFIER: Final = rf"(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)"
SEMVER: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?\Z", re.ASCII)
"""A semantic version (semver.org, 2.0.0) without build metadata, since an id cannot contain ``+``."""

SEMVER_COUNTER: Final = 1 << 62
"""Flag of a counter that contains the major (from bit 32) and minor number of the last generated semantic version."""


def _by_precedence(link: Link) -> tuple[Any, ...]:
    """Return the sort key of a Version by semantic version; ids that are not semantic versions come first."""
    return *_precedence(link.versionid), link.versionid.lower()


def _precedence(id_: str) -> tuple[Any, ...]:
    match = LENIENT_SEMVER.match(id_)
    if not match:
        return 0, (0, 0, 0), ()
    numbers = tuple(int(number or 0) for number in match.group(1, 2, 3))
    return 1, numbers, ((1,),) if not match[4] else ((0,), *map(_prerelease_rank, match[4].split(".")))


def _semver_fault(id_: str) -> str | None:
    if SEMVER.match(id_):
        return None
    return "the versionmode 'semver' requires a semantic version: MAJOR.MINOR.PATCH, for example 1.0.0 or 2.1.0-rc.1"


def _next_semver(counter: int, taken: Collection[str]) -> tuple[str, int]:
    """Return the next minor version above all existing and generated ones, or 1.0.0 if there are none.

    If the highest version is a pre-release of MAJOR.MINOR.0, that release is next.
    """
    is_semver, (major, minor, patch), release = max(map(_precedence, taken), default=(0, (0, 0, 0), ()))
    if not is_semver:
        major, minor = 1, 0
    elif patch or release == ((1,),):
        minor += 1
    if counter & SEMVER_COUNTER:
        last = (counter ^ SEMVER_COUNTER) >> 32, counter & 0xFFFFFFFF
        major, minor = max((major, minor), (last[0], last[1] + 1))
    fits = major < 1 << 29 and minor < 1 << 32
    return f"{major}.{minor}.0", SEMVER_COUNTER | major << 32 | minor if fits else counter


def _prerelease_rank(text: str) -> tuple[int, int, str]:
    """Return the sort key of a pre-release identifier: numbers compare by value and come before other identifiers."""
    return (0, int(text), "") if text.isdigit() else (1, 0, text)


def instant_key(text: str) -> str:
    """Return the sort key of a normalized UTC timestamp: a string that sorts in time order."""
    whole, _, fraction = text[:-1].partition(".")
    return f"{whole}.{fraction:0<9}"


MODES: Final[Mapping[str, VersionMode]] = {
    "manual": VersionMode(_chain_unset, _newest_leaf, _oldest_root),
    "createdat": _ordered(_by_creation),
    "modifiedat": _ordered(_by_change),
    "semver": _ordered(_by_precedence, next_id=_next_semver, id_fault=_semver_fault),
}
