"""Read and check a model from a client. `wirebook.core.entities.model_change` applies it to entities.

Spec: core/model.md#creating-or-updating-the-registry-model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wirebook.core.dotpath import BadPath
from wirebook.core.model.attribute_definitions import check_targets
from wirebook.core.model.compiled import Model, compile_model
from wirebook.core.model.constraints import check_model_constraints
from wirebook.core.model.datatypes import preview, types_of
from wirebook.core.model.full import complete
from wirebook.core.model.language import check_language
from wirebook.core.model.source import Fetch, Homes, expand_includes, import_resources, model_error


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model and the homes of its imported types."""

    model: Model
    homes: Homes


def read_model(source: Any, fetch: Fetch, modes: tuple[str, ...]) -> NewModel:
    """Return the model that a client sent as `source`. `modes` are the version modes that the service offers.

    Raises: model_error, model_required_true, model_scalar_default, invalid_attribute
    """
    if not isinstance(source, Mapping):
        raise model_error(f"it must be an object; got {preview(source)}")
    expanded = expand_includes(source, fetch)
    check_language(expanded, modes)
    complete_source, homes = import_resources(expanded)
    try:
        model = compile_model(complete(complete_source), homes)
    except BadPath as error:
        raise model_error(f"constraints: {error}") from None
    check_targets(model, types_of(model))
    check_model_constraints(model)
    return NewModel(model, homes)


def preserve_homes(old: Model, new: NewModel) -> NewModel:
    """Return `new` with the former homes of types that were imported and are now defined in place.

    Reading: defining the same type in a different way does not make entities invalid, so cross-references remain.
    """
    preserved: Homes = {}
    for group, type_ in new.model.resource_types():
        here = group.plural, type_.plural
        was = old.resource_type(*here)
        origin = new.model.resource_type(*was.home) if was and was.home != here == type_.home else None
        if origin and replace(origin, home=here) == type_:
            preserved[here] = origin.home
    if not preserved:
        return new
    homes = new.homes | preserved
    return NewModel(compile_model(new.model.full, homes), homes)
