"""Check a model against the model language: the types of Groups and Resources and their aspects.

`check_language` expects a model whose includes are expanded. It raises the first error, with its path.

Spec: core/model.md#registry-model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wirebook.core.model import predefined as texts
from wirebook.core.model.aspects import CONSTRAINT, GROUP, RESOURCE, ROOT, check_aspects
from wirebook.core.model.attribute_definitions import check_attributes
from wirebook.core.model.attributes import ATTRIBUTE_NAME
from wirebook.core.model.compiled import NONE
from wirebook.core.model.datatypes import preview
from wirebook.core.model.source import model_error

MAX_PLURAL: Final = 57
MAX_SINGULAR: Final = 63
TYPEMAP_VALUES: Final = ("binary", "json", "string")
VERSION_MODES: Final = ("manual", "createdat", "modifiedat", "semver")
PATHS: Final = frozenset({"capabilities", "capabilitiesoffered", "export", "model", "modelsource"})
"""Names that follow the root in request paths, and so cannot be Group types."""

BELOW: Final = frozenset({"meta", "versions"})
"""Names that follow a Resource in request paths and flags, and so cannot be Resource types."""


def check_language(source: Any, modes: tuple[str, ...] = VERSION_MODES) -> None:
    """Check everything in a model that does not depend on the former model.

    `modes` are the version modes that the service offers.
    Raises: model_error, model_required_true, model_scalar_default, invalid_attribute
    """
    check_aspects(source, ROOT, "the model")
    check_attributes(source.get("attributes"), "attributes", text=dict((*texts.REGISTRY, *texts.REGISTRY_TAIL)))
    names = set(PATHS)
    for plural, group in _entries(source, "groups", "groups"):
        _check_group(plural, group, f"groups.{plural}", names, modes)


def _check_group(plural: str, group: Mapping[str, Any], path: str, names: set[str], modes: tuple[str, ...]) -> None:
    check_aspects(group, GROUP, path)
    _check_names(plural, group, path, names, MAX_SINGULAR)
    check_attributes(group.get("attributes"), f"{path}.attributes", text=dict(texts.group(group["singular"])))
    inner = set(BELOW)
    for name, resource in _entries(group, "resources", f"{path}.resources"):
        _check_resource(name, resource, f"{path}.resources.{name}", inner, modes)
    for key, constraint in (group.get("constraints") or NONE).items():
        if constraint is not None:
            check_aspects(constraint, CONSTRAINT, f"{path}.constraints['{key}']")


def _entries(node: Mapping[str, Any], name: str, path: str) -> list[tuple[str, Any]]:
    entries = node.get(name) or NONE
    for key, entry in entries.items():
        if not isinstance(entry, Mapping):
            raise model_error(f"{path}.{key} must be an object; got {preview(entry)}")
    return list(entries.items())


def _check_names(key: str, node: Mapping[str, Any], path: str, taken: set[str], longest: int) -> None:
    """Check that plural and singular are valid and unused."""
    plural, singular = node.get("plural") or key, node.get("singular")
    if plural != key:
        raise model_error(f"{path}.plural is '{plural}', but its key is '{key}'; both must be equal")
    if not singular:
        raise model_error(f"{path}.singular is required")
    for name, limit in ((plural, MAX_PLURAL), (singular, longest)):
        if not ATTRIBUTE_NAME.match(name) or len(name) > limit:
            raise model_error(
                f"{path}: '{name}' is not a valid type name: up to {limit} of a-z 0-9 _, not starting with a digit"
            )
        if name in taken:
            raise model_error(f"{path}: the name '{name}' is already used or reserved")
        taken.add(name)


def _check_resource(name: str, node: Mapping[str, Any], path: str, taken: set[str], modes: tuple[str, ...]) -> None:
    check_aspects(node, RESOURCE, path)
    _check_names(name, node, path, taken, MAX_PLURAL)
    mode = "manual" if node.get("versionmode") is None else node["versionmode"].lower()
    if mode not in modes:
        raise model_error(f"{path}.versionmode is '{mode}', not one of: {', '.join(modes)}")
    # Reading: a chain always has one root, so the aspect is true by default (checklist C-VER-15).
    if mode != "manual" and node.get("singleversionroot") is False:
        raise model_error(f"{path}.singleversionroot must be true with the versionmode '{mode}'")
    if node.get("validatecompatibility") and not node.get("validateformat"):
        raise model_error(f"{path}.validatecompatibility requires validateformat to be true")
    for key, value in (node.get("typemap") or NONE).items():
        if key.count("*") > 1:
            raise model_error(f"{path}.typemap['{key}'] has more than one '*' in its key")
        if value.lower() not in TYPEMAP_VALUES:
            raise model_error(f"{path}.typemap['{key}'] is '{value}', not one of: {', '.join(TYPEMAP_VALUES)}")
    singular = node["singular"]
    version = dict((*texts.version(singular), *texts.document(singular)))
    meta = dict((*texts.meta(singular), *texts.META_TAIL))
    check_attributes(node.get("attributes"), f"{path}.attributes", versions=True, text=version)
    check_attributes(node.get("metaattributes"), f"{path}.metaattributes", text=meta)
    resource = dict(texts.resource(singular))
    check_attributes(node.get("resourceattributes"), f"{path}.resourceattributes", text=resource)
