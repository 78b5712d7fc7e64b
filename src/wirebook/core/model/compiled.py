"""The compiled model of a registry: Group and Resource types, their attributes and the allowed values.

`compile_model` reads a full model, in which nothing is omitted (`wirebook.core.model.full`).

Spec: core/model.md#registry-model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from wirebook.core.dotpath import DotPath, parse_dotpath


class _Nothing(Mapping[str, Any]):
    """A shared empty mapping."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    __hash__ = object.__hash__  # dataclasses require hashable defaults


NONE: Final[Mapping[str, Any]] = _Nothing()
REFERENCES: Final = ("uri", "uriabsolute", "urirelative", "uritemplate", "url", "urlabsolute", "urlrelative")
SCALARS: Final = frozenset(
    {"boolean", "decimal", "integer", "string", "timestamp", "uinteger", "xid", "xidtype", *REFERENCES}
)
TYPES: Final = SCALARS | {"any", "array", "map", "object"}


class Attributes(dict[str, "Attribute"]):
    """Attributes by name, in order, with cached views for checking members."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # dataclasses require hashable defaults

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The names of required attributes."""
        return tuple(name for name, attribute in self.items() if attribute.required)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The default values by name."""
        return {name: attribute.default for name, attribute in self.items() if attribute.default is not None}

    @cached_property
    def branching(self) -> tuple[Attribute, ...]:
        """Attributes with `ifvalues`, whose value may define sibling attributes."""
        return tuple(attribute for attribute in self.values() if attribute.ifvalues)


JsonType = type[str] | type[bool]
_PLAIN: Final[Mapping[str, JsonType]] = {"string": str, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Attribute:
    """The definition of an attribute, an object's member, an array's item or a map's value.

    Shape: `attributes` are an object's members, `item` defines the items of an array or the values of a map. `ifvalues`
    maps the case-folded text of a value to the sibling attributes that the value defines. `extended`: names of members
    follow the rules for map keys.
    """

    name: str
    type: str
    target: str = ""
    extended: bool = False
    enum: tuple[Any, ...] = ()
    strict: bool = True
    matchversions: bool = False
    readonly: bool = False
    required: bool = False
    default: Any = None
    attributes: Attributes = Attributes()  # noqa: RUF009 (never changed)
    item: Attribute | None = None
    ifvalues: Mapping[str, Attributes] = NONE
    plain: JsonType | None = field(init=False)
    """`str` or `bool` if all values of that type are valid, except for strings longer than `datatypes.SHORT`."""
    texts: frozenset[str] = field(init=False)
    """The strings of `enum`, case-folded."""

    def __post_init__(self) -> None:
        is_free = not self.enum and not self.target and not self.readonly
        object.__setattr__(self, "plain", _PLAIN.get(self.type) if is_free else None)
        object.__setattr__(self, "texts", frozenset(value.casefold() for value in self.enum if isinstance(value, str)))

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALARS


@dataclass(frozen=True, slots=True)
class GroupConstraint:
    """A constraint of a Group on an attribute of its Resources. `default` None and `enum` () mean absent."""

    resources: str
    path: DotPath
    key: str
    default: Any = None
    enum: tuple[Any, ...] = ()
    equals: DotPath | None = None


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A Resource type. `home` is where the type is defined, as (Group type, Resource type), also if it is imported."""

    plural: str
    singular: str
    home: tuple[str, str]
    maxversions: int
    setversionid: bool
    hasdocument: bool
    versionmode: str
    singleversionroot: bool
    validateformat: bool
    validatecompatibility: bool
    strictvalidation: bool
    typemap: Mapping[str, str]
    attributes: Attributes
    metaattributes: Attributes

    @property
    def id_name(self) -> str:
        return f"{self.singular}id"

    @property
    def document_names(self) -> tuple[str, str, str]:
        """The three attributes that can contain or reference the document."""
        return self.singular, f"{self.singular}url", f"{self.singular}base64"


@dataclass(frozen=True, slots=True)
class GroupType:
    """A Group type and the Resource types in it, by plural name."""

    plural: str
    singular: str
    attributes: Attributes
    constraints: tuple[GroupConstraint, ...]
    resources: Mapping[str, ResourceType]

    @property
    def id_name(self) -> str:
        return f"{self.singular}id"


@dataclass(frozen=True, slots=True)
class Model:
    """The model: attributes of the Registry, and Group types by plural name.

    `full` is the model as JSON. `attribute_sets` and `bare_metas` are caches of `wirebook.core.entities.changeset` and
    `wirebook.core.entities.defaults`, which live as long as the model.
    """

    attributes: Attributes
    groups: Mapping[str, GroupType]
    full: Mapping[str, Any] = field(repr=False, compare=False)
    attribute_sets: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    bare_metas: dict[Any, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def resource_types(self) -> Iterator[tuple[GroupType, ResourceType]]:
        """Yield every Resource type with its Group type."""
        return ((group, resource) for group in self.groups.values() for resource in group.resources.values())

    def resource_type(self, groups: str, resources: str) -> ResourceType | None:
        """Return a Resource type by plural names, or None."""
        group = self.groups.get(groups)
        return group.resources.get(resources) if group else None


def compile_model(full: Mapping[str, Any], homes: Mapping[tuple[str, str], tuple[str, str]] | None = None) -> Model:
    """Compile a full model. `homes` maps imported types to their homes, where they are defined."""
    groups = {plural: _group(group, homes or {}) for plural, group in full.get("groups", NONE).items()}
    return Model(compile_attributes(full["attributes"]), groups, full)


def _group(full: Mapping[str, Any], homes: Mapping[tuple[str, str], tuple[str, str]]) -> GroupType:
    plural = full["plural"]
    resources = {name: _resource(plural, resource, homes) for name, resource in full.get("resources", NONE).items()}
    constraints = parse_constraints(full.get("constraints", NONE))
    return GroupType(plural, full["singular"], compile_attributes(full["attributes"]), constraints, resources)


ASPECTS: Final = (
    "maxversions",
    "setversionid",
    "hasdocument",
    "singleversionroot",
    "validateformat",
    "validatecompatibility",
    "strictvalidation",
)


def _resource(group: str, full: Mapping[str, Any], homes: Mapping[tuple[str, str], tuple[str, str]]) -> ResourceType:
    here = (group, full["plural"])
    return ResourceType(
        plural=full["plural"],
        singular=full["singular"],
        home=homes.get(here, here),
        versionmode=full["versionmode"].lower(),
        typemap={key.lower(): value.lower() for key, value in full.get("typemap", NONE).items()},
        attributes=compile_attributes(full["attributes"]),
        metaattributes=compile_attributes(full["metaattributes"]),
        **{aspect: full[aspect] for aspect in ASPECTS},
    )


def parse_constraints(source: Mapping[str, Any]) -> tuple[GroupConstraint, ...]:
    """Return the constraints of a Group type or a Group. Their structure has been checked. Raises: BadPath"""
    return tuple(_constraint(key, constraint) for key, constraint in source.items() if constraint is not None)


def _constraint(key: str, source: Mapping[str, Any]) -> GroupConstraint:
    resources, _, path = key.partition(".")
    equals = source.get("equals")
    return GroupConstraint(
        resources,
        parse_dotpath(path),
        path,
        source.get("default"),
        tuple(source.get("enum") or ()),
        parse_dotpath(equals) if equals else None,
    )


def is_extended(full: Mapping[str, Any]) -> bool:
    """Return whether names of an object's members follow the rules for map keys.

    `full` is its definition in the full model or in the model source.
    """
    return (full.get("namecharset") or "strict").lower() == "extended"


def compile_attributes(full: Mapping[str, Any]) -> Attributes:
    """Compile the attributes of an entity or an object in a full model."""
    return Attributes({name: _attribute(definition) for name, definition in full.items()})


def _attribute(full: Mapping[str, Any]) -> Attribute:
    item = full.get("item")
    return Attribute(
        name=full.get("name", ""),
        type=full["type"],
        target=full.get("target", ""),
        extended=is_extended(full),
        enum=tuple(full.get("enum", ())),
        strict=full.get("strict", True),
        matchversions=full.get("matchversions", False),
        readonly=full.get("readonly", False),
        required=full.get("required", False),
        default=full.get("default"),
        attributes=compile_attributes(full.get("attributes", NONE)),
        item=_attribute(item) if item else None,
        ifvalues={
            key.casefold(): compile_attributes(ifvalue.get("siblingattributes", NONE))
            for key, ifvalue in full.get("ifvalues", NONE).items()
        },
    )
