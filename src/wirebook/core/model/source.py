"""Expand a model source: `$include`, `$includes` and `ximportresources`.

The caller of `expand_includes` provides the function that fetches documents.

Spec: core/model.md#includes-in-the-xregistry-model-data; core/model.md#reuse-of-resource-definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from wirebook.core.model.datatypes import preview
from wirebook.problems.xregistry import Refused, refused
from wirebook.text.pointers import resolve

Fetch = Callable[[str], Any]
"""Returns the JSON document at an absolute address, or raises OSError or ValueError."""

DIRECTIVES: Final = ("$include", "$includes")
MAX_CHAIN: Final = 20
"""Maximum length of a chain of includes."""

MAX_VALUES: Final = 1_000_000
MAX_DEPTH: Final = 100
"""Limits of a model after its includes are expanded: number of values and nesting."""

_NOTHING: Final = object()


def model_error(why: str) -> Refused:
    """Return the error for an invalid model."""
    return refused("model_error", "/model", error_detail=why)


def expand_includes(source: Mapping[str, Any], fetch: Fetch, base: str = "") -> dict[str, Any]:
    """Return `source` with its include directives expanded. Relative references are resolved against the URL `base`.

    Raises: model_error
    """
    return _Expansion(fetch, {base: source}).expand(source, base, (), 0)  # type: ignore[no-any-return]


class _Expansion:
    """The expansion of one model. It caches fetched documents and counts values."""

    def __init__(self, fetch: Fetch, documents: dict[str, Any]) -> None:
        self._fetch, self._documents, self._count = fetch, documents, 0

    def expand(self, value: Any, base: str, chain: tuple[str, ...], depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            limits = f"more than {MAX_VALUES} values, or they are nested deeper than {MAX_DEPTH}"
            raise model_error(f"after its includes are expanded, it has {limits}")
        if isinstance(value, list):
            return [self.expand(member, base, chain, depth + 1) for member in value]
        if not isinstance(value, Mapping):
            return value
        own = {
            name: self.expand(member, base, chain, depth + 1)
            for name, member in value.items()
            if name not in DIRECTIVES
        }
        for reference in _references(value):
            for name, included in self._included(reference, base, chain, depth).items():
                own.setdefault(name, included)
        return own

    def _included(self, reference: Any, base: str, chain: tuple[str, ...], depth: int) -> Mapping[str, Any]:
        if not isinstance(reference, str) or not reference:
            raise model_error(f"an include must be a non-empty string; got {preview(reference)}")
        address = urljoin(base, reference)
        if address in chain:
            raise model_error(f"'{reference}' includes itself")
        if len(chain) == MAX_CHAIN:
            raise model_error(f"'{reference}' exceeds a chain of more than {MAX_CHAIN} includes")
        document, fragment = urldefrag(address)
        included = self._at(document, fragment, reference)
        if not fragment:  # `$schema` describes the included document only
            included = {name: member for name, member in included.items() if name != "$schema"}
        expanded: Mapping[str, Any] = self.expand(included, document, (*chain, address), depth)
        return expanded

    def _at(self, document: str, fragment: str, reference: str) -> Mapping[str, Any]:
        if document not in self._documents:
            try:
                self._documents[document] = self._fetch(document)
            except (OSError, ValueError) as error:
                raise model_error(f"'{reference}' cannot be included: {error}") from error
        # Reading: the published composite model uses '#groups' where a JSON Pointer would be '#/groups'.
        pointer = unquote(fragment)
        pointer = pointer if not pointer or pointer.startswith("/") else f"/{pointer}"
        node = resolve(self._documents[document], pointer, _NOTHING)
        if not isinstance(node, Mapping):
            raise model_error(
                f"'{reference}' leads to {'nothing' if node is _NOTHING else preview(node)}, not an object"
            )
        return node


def _references(value: Mapping[str, Any]) -> list[Any]:
    if "$include" in value and "$includes" in value:
        raise model_error("an object must not have both '$include' and '$includes'")
    if "$includes" in value:
        if not isinstance(value["$includes"], list):
            raise model_error("'$includes' must be an array of strings")
        return list(value["$includes"])
    return [value["$include"]] if "$include" in value else []


Homes = dict[tuple[str, str], tuple[str, str]]


def import_resources(source: Mapping[str, Any]) -> tuple[dict[str, Any], Homes]:
    """Return the model with imported Resource types copied into their Groups, and the home of each imported type.

    The structure of `source` has been checked. Raises: model_error
    """
    written: Mapping[str, Any] = source.get("groups") or {}
    groups: dict[str, Any] = {}
    homes: Homes = {}
    for plural, group in written.items():
        resources = dict(group.get("resources") or {})
        for reference in group.get("ximportresources") or ():
            home = _home(written, plural, reference, ())
            if home[1] in resources:
                raise model_error(f"the Group type '{plural}' defines or imports the Resource type '{home[1]}' twice")
            resources[home[1]] = written[home[0]]["resources"][home[1]]
            homes[plural, home[1]] = home
        rest = {name: value for name, value in group.items() if name not in ("ximportresources", "resources")}
        groups[plural] = rest | ({"resources": resources} if resources else {})
    return {**source, "groups": groups}, homes


def _home(groups: Mapping[str, Any], plural: str, reference: str, chain: tuple[str, ...]) -> tuple[str, str]:
    """Return where the type that `reference` names is defined, following the imports of other Groups."""
    parts = reference.split("/")
    if len(parts) != 3 or parts[0] or parts[1] not in groups:
        expected = "'/<GROUPS>/<RESOURCES>' with a Group type of this model"
        raise model_error(f"the Group type '{plural}' imports '{reference}', which is not {expected}")
    if parts[1] == plural or reference in chain:
        raise model_error(f"the Group type '{plural}' imports '{reference}' from itself")
    other = groups[parts[1]]
    if parts[2] in (other.get("resources") or {}):
        return parts[1], parts[2]
    for further in other.get("ximportresources") or ():
        if further.rpartition("/")[2] == parts[2]:
            return _home(groups, parts[1], further, (*chain, reference))
    raise model_error(f"the Group type '{plural}' imports '{reference}', which is not defined")
