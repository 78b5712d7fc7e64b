"""Importing: a catalogue in any dialect as what a registry with a certain model takes.

    incoming = read_import(body, "the body")      # read and upgraded, once
    groups, problems = incoming.fit(model)        # for the model that the registry has now

The model counts, not the text: where both name one thing differently, it gets the model's name. Everything that is
changed or left out is reported, as in upgrading.

Spec: docs/registry.md#importing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wirebook.catalog.load import RegistrySource, load_registry, read_text
from wirebook.catalog.upgrade import upgrade
from wirebook.core.model.compiled import Attribute, Attributes, GroupType, Model, ResourceType
from wirebook.definitions.normalize.document_messages import RESOURCE_ONLY, default_version
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.names import BASE_NAMES
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Problem, WirebookError
from wirebook.text.pointers import child

Groups = dict[str, dict[str, Any]]
OPTIONS: Final = "protocoloptions"
REQUIRED: Final = "required"
SELECTORS: Final = {"envelope": ("envelopemetadata", "envelopeoptions"), "protocol": (OPTIONS,)}
TIMES: Final = ("createdat", "modifiedat")
WITHOUT_ZONE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?")
LOSSES: Final = {"conflicting-documents", "wrong-shape", "id-mismatch"}
OF_THE_SERVER: Final = re.compile(
    r"\$schema|specversion|registryid|self|shortself|xid|epoch|createdat|modifiedat|.*url|.*count"
)
"""Members of a registry that are no loss: every server says its own."""


@dataclass(frozen=True, slots=True)
class Import:
    """A catalogue to be imported. `document` is it in 1.0-rc4, `problems` what was repaired on the way, with places."""

    registry: LoadedRegistry
    document: Mapping[str, Any]
    problems: tuple[Problem, ...]

    def fit(self, model: Model) -> tuple[Groups, tuple[Problem, ...]]:
        """The Groups, by type and id, as a registry with that model takes them, and what was changed or left out."""
        fitting = _ModelFitting(Log(), self.registry)
        groups = {
            plural: fitting.each(self.document[plural], f"/{plural}", model.groups[plural], fitting.group)
            for plural in self.document
            if plural in model.groups
        }
        fitting.left_out(self.document, model)
        return groups, (*self.problems, *map(self.place, fitting.log.problems))

    def place(self, problem: Problem) -> Problem:
        """A problem at a canonical pointer, with its file, line and column."""
        return self.registry.place(self.registry.trace(problem))


def load_import(sources: Sequence[RegistrySource]) -> Import:
    """The catalogue in files, or in documents that are values. Nothing they refer to is fetched.

    Raises: what loading raises, whatever kept a source from being read, and what would not come in as it is there
    (conflicting-documents, wrong-shape, id-mismatch, two bases of a message): it is all or nothing
    """
    registry = load_registry(*sources)
    lost = [diagnostic for diagnostic in registry.diagnostics if _is_loss(diagnostic)]
    if registry.unread or lost:
        raise WirebookError(*registry.unread, *lost)
    return Import(registry, *upgrade(registry))


def _is_loss(problem: Problem) -> bool:
    """Whether a part of the catalogue was left out, or one of two values taken, for want of a better reading."""
    is_base = (problem.pointer or "").rpartition("/")[2] in BASE_NAMES
    return problem.code in LOSSES or (problem.code == "conflicting-names" and is_base)


def read_import(data: bytes, name: str) -> Import:
    """The catalogue in the text of one JSON or YAML document. Raises: as `load_import`"""
    return load_import([read_text(data, name)])


@dataclass(frozen=True, slots=True)
class _ModelFitting:
    """Makes entities what a model allows, one after the other, and notes what it did."""

    log: Log
    registry: LoadedRegistry

    def each(self, members: Any, pointer: str, type_: Any, fit: Any) -> dict[str, Any]:
        return {key: fit(member, child(pointer, key), type_) for key, member in members.items()}

    def group(self, group: dict[str, Any], pointer: str, type_: GroupType) -> dict[str, Any]:
        fitted = self._with_zones(group, pointer)
        for plural, resources in type_.resources.items():
            if plural in fitted:
                fitted[plural] = self.each(fitted[plural], child(pointer, plural), resources, self._resource)
        return fitted

    def _resource(self, resource: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, Any]:
        fitted = self._version(resource, pointer, type_)
        if isinstance(fitted.get("meta"), dict):
            fitted["meta"] = self._with_zones(fitted["meta"], child(pointer, "meta"))
        if fitted.get("versions"):
            kept = self._kept(fitted, pointer, type_)
            fitted["versions"] = self.each(kept, child(pointer, "versions"), type_, self._version)
            return _without_own(fitted, default_version(fitted, kept, pointer, "", Log()), type_)
        return fitted

    def _version(self, version: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, Any]:
        """A Version, or a Resource's default one: the base has the name that the model gives it."""
        fitted = self._with_zones(version, pointer)
        known = next((name for name in BASE_NAMES if name in type_.attributes), None)
        if known not in (None, BASE_NAMES[0]) and BASE_NAMES[0] in fitted:
            message = f"'{BASE_NAMES[0]}' is '{known}' in the registry's model"
            self.log.report("old-base-name", child(pointer, BASE_NAMES[0]), message, expected=known)
            fitted = {known if name == BASE_NAMES[0] else name: value for name, value in fitted.items()}
        fitted |= self._selectors(fitted, pointer, type_)
        options = _attribute_of_options(fitted, type_)
        if options is not None:
            at = child(pointer, OPTIONS)
            fitted[OPTIONS] = self._optional(fitted[OPTIONS], at, options, self._resolved(pointer).get(OPTIONS))
        return fitted

    def _selectors(self, message: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, str]:
        """Envelope and protocol that the group or the base gives: a model has what depends on them only beside them."""
        found = {}
        for name, dependent in SELECTORS.items():
            given = self._resolved(pointer).get(name) if name in type_.attributes and name not in message else None
            if isinstance(given, str) and any(each in message for each in dependent):
                found[name] = given
                told = f"'{name}' is '{given}', as by the group or the base message"
                self.log.report("written-default", pointer, told, expected=given)
        return found

    def _resolved(self, pointer: str) -> Mapping[str, Any]:
        """The attributes of the message at a pointer, or of the one whose Version is there, with those of its base."""
        message = self.registry.messages.get("/".join(pointer.split("/")[:5]).replace("~1", "/").replace("~0", "~"))
        return message.attributes if message else {}

    def _optional(self, value: Any, pointer: str, attribute: Attribute, resolved: Any) -> Any:
        """Options, in which 'required' is written wherever a model makes true what is false by the text."""
        if not isinstance(value, dict):
            return value
        known, resolved = attribute.attributes, resolved if isinstance(resolved, dict) else {}
        fitted = {
            name: self._optional(each, child(pointer, name), known[name], resolved.get(name)) if name in known else each
            for name, each in value.items()
        }
        if REQUIRED in known and known[REQUIRED].default is True and REQUIRED not in value:
            fitted[REQUIRED] = resolved.get(REQUIRED, False)
            message = f"'{REQUIRED}' is {str(fitted[REQUIRED]).lower()} by the text; the registry's model has true"
            self.log.report("written-default", pointer, message, expected=fitted[REQUIRED])
        return fitted

    def _with_zones(self, entity: dict[str, Any], pointer: str) -> dict[str, Any]:
        """Times without a zone are taken to be in UTC."""
        fitted = dict(entity)
        for name in TIMES:
            given = entity.get(name)
            if isinstance(given, str) and WITHOUT_ZONE.fullmatch(given):
                fitted[name] = f"{given}Z"
                message = f"'{given}' has no zone and is taken to be in UTC"
                self.log.report("guessed-time-zone", child(pointer, name), message, expected=fitted[name], actual=given)
        return fitted

    def _kept(self, resource: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, Any]:
        """The Versions there is room for: where there is room for one, the default."""
        versions: dict[str, Any] = resource["versions"]
        if type_.maxversions != 1 or len(versions) < 2:
            return versions
        default = default_version(resource, versions, pointer, "", Log())
        for key in versions.keys() - {default}:
            message = f"the registry keeps one Version of '{type_.plural}': '{default}', the default"
            self.log.report("dropped-version", child(f"{pointer}/versions", key), message, actual=key)
        return {default: versions[default] | {"ancestorid": default}}

    def left_out(self, document: Mapping[str, Any], model: Model) -> None:
        """What is no Group: the registry has a name, labels and a model of its own."""
        for name in _others(document, model):
            message = f"'{name}' is not imported: the registry has its own"
            if isinstance(document[name], dict) and name not in model.attributes:
                message = f"'{name}' is not imported: the registry's model has no Groups of that name"
            self.log.report("not-imported", child("", name), message, actual=name)


def _attribute_of_options(message: Mapping[str, Any], type_: ResourceType) -> Attribute | None:
    """What the model says of a message's options, which depends on its protocol."""
    protocol, declared = message.get("protocol"), type_.attributes.get("protocol")
    if not isinstance(protocol, str) or declared is None or OPTIONS not in message:
        return None
    return declared.ifvalues.get(protocol.casefold(), Attributes()).get(OPTIONS)


def _without_own(resource: dict[str, Any], default: str, type_: ResourceType) -> dict[str, Any]:
    """The Resource with its attributes in the default Version: a registry reads them nowhere else if that is sent."""
    versions = resource["versions"]
    version = versions[default]
    documents = type_.document_names if any(name in version for name in type_.document_names) else ()
    kept = {name: value for name, value in resource.items() if name in (*RESOURCE_ONLY, type_.id_name)}
    own = {name: value for name, value in resource.items() if name not in kept and name not in documents}
    return kept | {"versions": versions | {default: own | version}}


def _others(document: Mapping[str, Any], model: Model) -> Iterator[str]:
    return (name for name in document if name not in model.groups and not OF_THE_SERVER.fullmatch(name))
