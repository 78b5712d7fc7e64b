"""Import a catalogue of any specification version into a registry with its own model.

    incoming = read_import(body, "the body")      # read and upgraded, once
    groups, problems = incoming.fit(model)        # adapted to the registry's current model

Where the model and the specification use different names, the model's name is written. Every change and omission is
reported, as for upgrades.

Spec: docs/registry.md#importing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
LOSSES: Final = {"conflicting-documents", "conflicting-names", "wrong-shape", "id-mismatch"}
"""Codes of problems which mean that loading ignored a part of the catalogue."""
OF_THE_SERVER: Final = re.compile(
    r"\$schema|specversion|registryid|self|shortself|xid|epoch|createdat|modifiedat|.*url|.*count"
)
"""Members of a registry document that every server sets itself, so leaving them out is not reported."""


@dataclass(frozen=True, slots=True)
class Import:
    """A catalogue to import: `document` in 1.0-rc4, and the `problems` of reading and upgrading it."""

    registry: LoadedRegistry
    document: Mapping[str, Any]
    problems: tuple[Problem, ...]

    def fit(self, model: Model) -> tuple[Groups, tuple[Problem, ...]]:
        """Return the Groups by type and id, adapted to a model, and a problem for each change and omission."""
        fitting = _ModelFitting(Log(), self.registry)
        groups = {
            plural: fitting.members(self.document[plural], f"/{plural}", model.groups[plural], fitting.group)
            for plural in self.document
            if plural in model.groups
        }
        fitting.report_omissions(self.document, model)
        return groups, (*self.problems, *map(self.place, fitting.log.problems))

    def place(self, problem: Problem) -> Problem:
        """Return a problem at a canonical pointer with its file, line and column."""
        return self.registry.place(self.registry.trace(problem))


def load_import(sources: Sequence[RegistrySource]) -> Import:
    """Load a catalogue for import. References to other documents are not fetched.

    Raises: WirebookError, as `load_registry`, and also if any source cannot be read or a part would be lost
    (``conflicting-documents``, ``conflicting-names``, ``wrong-shape``, ``id-mismatch``).
    """
    registry = load_registry(*sources)
    lost = [diagnostic for diagnostic in registry.diagnostics if diagnostic.code in LOSSES]
    if registry.unread or lost:
        raise WirebookError(*registry.unread, *lost)
    return Import(registry, *upgrade(registry))


def read_import(data: bytes, name: str) -> Import:
    """Load a catalogue from the text of one JSON or YAML document. Raises: as `load_import`."""
    return load_import([read_text(data, name)])


@dataclass(frozen=True, slots=True)
class _ModelFitting:
    """Adapts entities to a model and logs the changes."""

    log: Log
    registry: LoadedRegistry

    def members(self, members: Any, pointer: str, type_: Any, fit: Any) -> dict[str, Any]:
        """Apply `fit` to every member of a collection."""
        return {key: fit(member, child(pointer, key), type_) for key, member in members.items()}

    def group(self, group: dict[str, Any], pointer: str, type_: GroupType) -> dict[str, Any]:
        """Adapt a Group with its Resources."""
        fitted = self._with_zones(group, pointer)
        for plural, resources in type_.resources.items():
            if plural in fitted:
                fitted[plural] = self.members(fitted[plural], child(pointer, plural), resources, self._resource)
        return fitted

    def _resource(self, resource: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, Any]:
        fitted = self._version(resource, pointer, type_)
        if isinstance(fitted.get("meta"), dict):
            fitted["meta"] = self._with_zones(fitted["meta"], child(pointer, "meta"))
        if fitted.get("versions"):
            versions = self._allowed_versions(fitted, pointer, type_)
            fitted["versions"] = self.members(versions, child(pointer, "versions"), type_, self._version)
            return _in_default_version(fitted, default_version(fitted, versions, pointer, "", Log()), type_)
        return fitted

    def _version(self, version: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, Any]:
        """Adapt a Version, or a Resource, which has the attributes of its default Version."""
        fitted = self._with_zones(version, pointer)
        known = next((name for name in BASE_NAMES if name in type_.attributes), None)
        if known not in (None, BASE_NAMES[0]) and BASE_NAMES[0] in fitted:
            message = f"'{BASE_NAMES[0]}' was renamed to '{known}', its name in the registry's model"
            self.log.report("old-base-name", child(pointer, BASE_NAMES[0]), message, expected=known)
            fitted = {known if name == BASE_NAMES[0] else name: value for name, value in fitted.items()}
        fitted |= self._selectors(fitted, pointer, type_)
        options = _options_attribute(fitted, type_)
        if options is not None:
            at = child(pointer, OPTIONS)
            fitted[OPTIONS] = self._with_required(
                fitted[OPTIONS], at, options, self._effective_attributes(pointer).get(OPTIONS)
            )
        return fitted

    def _selectors(self, message: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, str]:
        """Return the inherited envelope and protocol if the message has attributes that the model ties to them."""
        inherited = {}
        for name, dependants in SELECTORS.items():
            if name not in type_.attributes or name in message:
                continue
            value = self._effective_attributes(pointer).get(name)
            if isinstance(value, str) and any(dependant in message for dependant in dependants):
                inherited[name] = value
                text = f"'{name}' was added with the value '{value}', inherited from the group or the base message"
                self.log.report("written-default", pointer, text, expected=value)
        return inherited

    def _effective_attributes(self, pointer: str) -> Mapping[str, Any]:
        """Return the effective attributes, with inherited ones, of the message or Version at a pointer."""
        message = self.registry.messages.get("/".join(pointer.split("/")[:5]).replace("~1", "/").replace("~0", "~"))
        return message.attributes if message else {}

    def _with_required(self, value: Any, pointer: str, attribute: Attribute, resolved: Any) -> Any:
        """Write `required` in options for which the model's default is true; that of the specification is false."""
        if not isinstance(value, dict):
            return value
        known, resolved = attribute.attributes, resolved if isinstance(resolved, dict) else {}
        fitted = {
            name: self._with_required(option, child(pointer, name), known[name], resolved.get(name))
            if name in known
            else option
            for name, option in value.items()
        }
        if REQUIRED in known and known[REQUIRED].default is True and REQUIRED not in value:
            fitted[REQUIRED] = resolved.get(REQUIRED, False)
            message = f"'{REQUIRED}' was added with the value {str(fitted[REQUIRED]).lower()}, "
            message += "as the registry's model has another default"
            self.log.report("written-default", pointer, message, expected=fitted[REQUIRED])
        return fitted

    def _with_zones(self, entity: dict[str, Any], pointer: str) -> dict[str, Any]:
        """Add UTC to times without a time zone."""
        fitted = dict(entity)
        for name in TIMES:
            time = entity.get(name)
            if isinstance(time, str) and WITHOUT_ZONE.fullmatch(time):
                fitted[name] = f"{time}Z"
                message = f"'{time}' has no time zone and was read as UTC; write '{time}Z'"
                self.log.report("guessed-time-zone", child(pointer, name), message, expected=fitted[name], actual=time)
        return fitted

    def _allowed_versions(self, resource: dict[str, Any], pointer: str, type_: ResourceType) -> dict[str, Any]:
        """Return the Versions that the model allows: all, or only the default one."""
        versions: dict[str, Any] = resource["versions"]
        if type_.maxversions != 1 or len(versions) < 2:
            return versions
        default = default_version(resource, versions, pointer, "", Log())
        for key in [key for key in versions if key != default]:
            message = (
                f"the registry keeps only the default Version of '{type_.plural}', '{default}'; this one was dropped"
            )
            self.log.report("dropped-version", child(f"{pointer}/versions", key), message, actual=key)
        return {default: versions[default] | {"ancestorid": default}}

    def report_omissions(self, document: Mapping[str, Any], model: Model) -> None:
        """Report members of the document that are not Groups: the registry has its own name, labels and model."""
        for name in document:
            if name in model.groups or OF_THE_SERVER.fullmatch(name):
                continue
            message = f"'{name}' is not imported: the registry has its own"
            if isinstance(document[name], dict) and name not in model.attributes:
                message = f"'{name}' is not imported: the registry's model has no Group type with this name"
            self.log.report("not-imported", child("", name), message, actual=name)


def _options_attribute(message: Mapping[str, Any], type_: ResourceType) -> Attribute | None:
    """Return the model's definition of a message's options, which depends on its protocol."""
    protocol, declared = message.get("protocol"), type_.attributes.get("protocol")
    if not isinstance(protocol, str) or declared is None or OPTIONS not in message:
        return None
    return declared.ifvalues.get(protocol.casefold(), Attributes()).get(OPTIONS)


def _in_default_version(resource: dict[str, Any], default: str, type_: ResourceType) -> dict[str, Any]:
    """Move the attributes of a Resource to its default Version: a registry ignores them beside Versions."""
    versions = resource["versions"]
    version = versions[default]
    documents = type_.document_names if any(name in version for name in type_.document_names) else ()
    remaining = {name: value for name, value in resource.items() if name in (*RESOURCE_ONLY, type_.id_name)}
    moved = {name: value for name, value in resource.items() if name not in remaining and name not in documents}
    return remaining | {"versions": versions | {default: moved | version}}
