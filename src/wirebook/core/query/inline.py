"""Parse the flag `inline`: which collections, metas, documents and models a response contains in full.

    path = name *( "." name ) [ "." "*" ] / "*"

Spec: core/spec.md#inline-flag.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from wirebook.core.dotpath import ANY_MEMBER, BadPath, PathMember, parse_dotpath
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import RequestTarget
from wirebook.core.query.filters import Level, attributes_of, collections, level_of, types_at
from wirebook.problems.xregistry import refused

SPECIAL: Final = ("capabilities", "model", "modelsource")
"""Attributes of the Registry that are inlined by name only, not by ``*``."""


@dataclass(slots=True)
class Inline:
    """A tree of the names to inline. `everything`: inline everything below, except for `SPECIAL`."""

    everything: bool = False
    names: dict[str, Inline] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.names or (self.everything and name not in SPECIAL)

    def __getitem__(self, name: str) -> Inline:
        below = self.names.get(name)
        return EVERYTHING if self.everything and name not in SPECIAL else below or NOTHING

    @property
    def is_empty(self) -> bool:
        return not (self.everything or self.names)

    def mentions(self, names: Collection[str]) -> bool:
        """Return whether one of these names is inlined at any level."""
        return self.everything or any(name in names or below.mentions(names) for name, below in self.names.items())

    def add(self, names: Sequence[str], *, everything: bool) -> None:
        """Add a path of names and, with `everything`, everything below it."""
        tree = self
        for name in names:
            tree = tree.names.setdefault(name, Inline())
        tree.everything = tree.everything or everything


EVERYTHING: Final = Inline(everything=True)
NOTHING: Final = Inline()


def list_items(parameters: Sequence[str]) -> list[str]:
    """Return the items of a list flag, which may be comma-separated and repeated; ``*`` for a flag without items."""
    return [
        item
        for parameter in parameters
        for item in (filter(None, parameter.split(",")) if parameter.strip(",") else "*")
    ]


def parse_inline(
    parameters: Sequence[str] | None, target: RequestTarget, model: Model, *, everything: bool = False
) -> Inline:
    """Return the tree of names to inline below the target or, for a collection, below each of its entities.

    Raises: bad_inline, inline_noninlineable
    """
    tree = Inline(everything=everything)
    for text in list_items(parameters or ()):
        names, is_star = _parse_path(text, target)
        _check_path(text, names, target, model, is_star=is_star)
        tree.add(names, everything=is_star)
    return tree


def _parse_path(text: str, target: RequestTarget) -> tuple[list[str], bool]:
    """Return the names of a path, and whether it ends in ``*``. Raises: bad_inline"""
    try:
        path = parse_dotpath(text)
    except BadPath as error:
        raise refused("bad_inline", target.path, value=text, error_detail=str(error)) from None
    is_star = path[-1] is ANY_MEMBER
    names = [step.name if isinstance(step, PathMember) else "*" for step in (path[:-1] if is_star else path)]
    if any("*" in name for name in names):
        why = "'*' is allowed as the last name only"
        raise refused("bad_inline", target.path, value=text, error_detail=why)
    return names, is_star


def _check_path(text: str, names: list[str], target: RequestTarget, model: Model, *, is_star: bool) -> None:
    """Check that all names before the last name or ``*`` are collections, and that the last can be inlined.

    Raises: bad_inline, inline_noninlineable
    """
    level, in_meta = level_of(target), target.kind == "meta"
    for i, name in enumerate(names):
        if not in_meta and name in collections(level, model):
            level = (*level, name)
        elif in_meta or is_star or i < len(names) - 1 or name not in _inlineable(level, model):
            if name in attributes_of(level, model, meta=in_meta):
                raise refused("inline_noninlineable", target.path, name=text)
            raise refused(
                "bad_inline", target.path, value=text, error_detail=f"'{name}' is not an attribute that can be inlined"
            )


def _inlineable(level: Level, model: Model) -> tuple[str, ...]:
    """Return the attributes of an entity, other than collections, that can be inlined."""
    _, resource = types_at(level, model)
    if not level:
        return SPECIAL
    if resource is None:
        return ()
    meta = ("meta",) if len(level) == 2 else ()
    return (*meta, resource.singular)
