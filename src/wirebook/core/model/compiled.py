"""The model of a registry, compiled: which Groups, Resources and attributes there are, and what their values may be.

`compile_model` reads the full model, in which nothing is left out (see `wirebook.core.model.full`).

Spec: core/model.md#registry-model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from wirebook.core.dotpath import DotPath, parse_dotpath


class _Nothing(Mapping[str, Any]):
    """A mapping without entries, which is shared."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    __hash__ = object.__hash__  # a default of dataclasses must have one


NONE: Final[Mapping[str, Any]] = _Nothing()
REFERENCES: Final = ("uri", "uriabsolute", "urirelative", "uritemplate", "url", "urlabsolute", "urlrelative")
SCALARS: Final = frozenset(
    {"boolean", "decimal", "integer", "string", "timestamp", "uinteger", "xid", "xidtype", *REFERENCES}
)
TYPES: Final = SCALARS | {"any", "array", "map", "object"}


class Attributes(dict[str, "Attribute"]):
    """Attributes by their names, in order; and those of them that every check of members has to look at."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # a default of dataclasses must have one

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, attribute in self.items() if attribute.required)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        return {name: attribute.default for name, attribute in self.items() if attribute.default is not None}

    @cached_property
    def branching(self) -> tuple[Attribute, ...]:
        """Those whose value may bring others with it."""
        return tuple(attribute for attribute in self.values() if attribute.ifvalues)


JsonType = type[str] | type[bool]
_PLAIN: Final[Mapping[str, JsonType]] = {"string": str, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Attribute:
    """What the values of an attribute, a member, an item or a map's entry may be.

    Shape: `attributes` are an object's members, `item` is what an array or a map holds. `ifvalues` has the siblings
    that a value brings, by its case-folded text. `extended` lets members have names like the keys of maps.
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
    """`str` or `bool` where a client may set it and any value of that type will do, if a text is short."""
    texts: frozenset[str] = field(init=False)
    """The texts of `enum`, case-folded."""

    def __post_init__(self) -> None:
        is_free = not self.enum and not self.target and not self.readonly
        object.__setattr__(self, "plain", _PLAIN.get(self.type) if is_free else None)
        object.__setattr__(self, "texts", frozenset(value.casefold() for value in self.enum if isinstance(value, str)))

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALARS


@dataclass(frozen=True, slots=True)
class GroupConstraint:
    """What a Group demands of an attribute of its Resources. `default` None and `enum` () demand nothing."""

    resources: str
    path: DotPath
    key: str
    default: Any = None
    enum: tuple[Any, ...] = ()
    equals: DotPath | None = None


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A type of Resources. `home` is where it was defined, (Group type, Resource type): imports keep it."""

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
        """The three attributes of which one has the document."""
        return self.singular, f"{self.singular}url", f"{self.singular}base64"


@dataclass(frozen=True, slots=True)
class GroupType:
    """A type of Groups and the types of the Resources in them, by their plural names."""

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
    """The model: attributes of the Registry, and the types of Groups by their plural names. `full` is it as JSON;
    `attribute_sets` and `bare_metas` are what `wirebook.core.entities.changeset` and
    `wirebook.core.entities.defaults` make of
    it, kept for the next request."""

    attributes: Attributes
    groups: Mapping[str, GroupType]
    full: Mapping[str, Any] = field(repr=False, compare=False)
    attribute_sets: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    bare_metas: dict[Any, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def resource_types(self) -> Iterator[tuple[GroupType, ResourceType]]:
        return ((group, resource) for group in self.groups.values() for resource in group.resources.values())

    def resource_type(self, groups: str, resources: str) -> ResourceType | None:
        group = self.groups.get(groups)
        return group.resources.get(resources) if group else None


def compile_model(full: Mapping[str, Any], homes: Mapping[tuple[str, str], tuple[str, str]] | None = None) -> Model:
    """The model that `full` describes. `homes` says of imported types where they are from."""
    groups = {plural: _group(group, homes or {}) for plural, group in full.get("groups", NONE).items()}
    return Model(_attributes(full["attributes"]), groups, full)


def _group(full: Mapping[str, Any], homes: Mapping[tuple[str, str], tuple[str, str]]) -> GroupType:
    plural = full["plural"]
    resources = {name: _resource(plural, resource, homes) for name, resource in full.get("resources", NONE).items()}
    constraints = parse_constraints(full.get("constraints", NONE))
    return GroupType(plural, full["singular"], _attributes(full["attributes"]), constraints, resources)


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
        attributes=_attributes(full["attributes"]),
        metaattributes=_attributes(full["metaattributes"]),
        **{aspect: full[aspect] for aspect in ASPECTS},
    )


def parse_constraints(source: Mapping[str, Any]) -> tuple[GroupConstraint, ...]:
    """The constraints of a Group type, or of a Group, that were checked before."""
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
    """Whether the members of an object may have names like the keys of maps, in the full model or as it was written."""
    return (full.get("namecharset") or "strict").lower() == "extended"


def _attributes(full: Mapping[str, Any]) -> Attributes:
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
        attributes=_attributes(full.get("attributes", NONE)),
        item=_attribute(item) if item else None,
        ifvalues={
            key.casefold(): _attributes(ifvalue.get("siblingattributes", NONE))
            for key, ifvalue in full.get("ifvalues", NONE).items()
        },
    )
