"""The OpenAPI document (3.1) of a registry: every path, method, flag and body, from its model and its routes.

Spec: docs/registry.md#openapi; core/http.md#http-api-patterns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.model.capabilities import Offer, offered
from wirebook.core.model.compiled import GroupType, Model, ResourceType
from wirebook.core.model.json_schema import (
    EPOCHS,
    ecma,
    entity_schemas,
    map_of,
    object_schema,
    reference,
    required_in_requests,
)
from wirebook.core.model.predefined import SPECVERSION
from wirebook.core.model.target import DETAILS, METHODS
from wirebook.core.names import IDENTIFIER
from wirebook.core.query.specversions import older_names
from wirebook.httpapi.handlers.openapi_parts import (
    PROBLEM,
    answer,
    body,
    condition_parameters,
    conditions,
    document_headers,
    errors,
    flag_parameters,
    json_content,
    own_paths,
    responses,
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Route:
    """A path of the API. `kind` as in `Target`; `details`: its body is metadata though the Resource has a document."""

    kind: str
    path: str
    parameters: tuple[str, ...] = ()
    group: GroupType | None = None
    type: ResourceType | None = None
    details: bool = False

    @property
    def is_document(self) -> bool:
        has = self.type is not None and self.type.hasdocument
        return self.kind in ("resource", "version") and has and not self.details

    @property
    def schema(self) -> str:
        """The name of the component that describes the entity, or those of the collection."""
        if self.group is None:
            return "registry"
        if self.type is None:
            return self.group.plural
        name = f"{self.group.plural}.{self.type.plural}"
        return f"{name}.{'meta' if self.kind == 'meta' else 'versions'}" if self.kind in BELOW else name

    @property
    def name(self) -> str:
        types = [each.plural for each in (self.group, self.type) if each is not None]
        return "-".join([*types, self.kind, *(["details"] if self.details else [])])


BELOW: Final = ("meta", "versions", "version")


def routes(model: Model) -> Iterator[Route]:
    """Every path that the model makes."""
    yield Route("registry", "/")
    for group in model.groups.values():
        yield Route("groups", f"/{group.plural}", (), group)
        path, ids = f"/{group.plural}/{{{group.id_name}}}", (group.id_name,)
        yield Route("group", path, ids, group)
        for type_ in group.resources.values():
            yield from _resource_routes(path, ids, group, type_)


def _resource_routes(base: str, ids: tuple[str, ...], group: GroupType, type_: ResourceType) -> Iterator[Route]:
    path = f"{base}/{type_.plural}"
    yield Route("resources", path, ids, group, type_)
    path, ids = _with_id(path, ids, type_.id_name)
    yield from _twice(Route("resource", path, ids, group, type_))
    yield Route("meta", f"{path}/meta", ids, group, type_)
    path += "/versions"
    yield Route("versions", path, ids, group, type_)
    path, ids = _with_id(path, ids, "versionid")
    yield from _twice(Route("version", path, ids, group, type_))


def _with_id(path: str, ids: tuple[str, ...], name: str) -> tuple[str, tuple[str, ...]]:
    """The path of an entity in a collection. A name that is taken gets a number: types may be called alike."""
    name = name if name not in ids else f"{name}{len(ids) + 1}"
    return f"{path}/{{{name}}}", (*ids, name)


def _twice(route: Route) -> Iterator[Route]:
    """A path, and where it is a document's the one of its metadata."""
    yield route
    if route.is_document:
        yield Route(route.kind, route.path + DETAILS, route.parameters, route.group, route.type, details=True)


# -- the document ---------------------------------------------------------------------------------------------------


def openapi(
    model: Model,
    capabilities: Mapping[str, Any],
    offer: Offer,
    base: str,
    special: Mapping[str, Sequence[str]],
) -> Json:
    """The document for the registry at `base`. Shape: `special` has the methods of paths that are no entities'."""
    described = _Describing(model, capabilities)
    paths = {route.path: described.path(route) for route in routes(model)}
    paths |= own_paths(special)
    capability = {"capabilities": object_schema(offered(offer))}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "xRegistry",
            "version": SPECVERSION,
            "description": "A registry of xRegistry. Every path also answers OPTIONS, and HEAD where it answers GET.",
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {
            "schemas": _entities(model, capabilities["specversions"]) | capability | {"problem": PROBLEM},
            "responses": responses(),
            "parameters": flag_parameters(capabilities) | conditions(),
        },
    }


def _entities(model: Model, specversions: Sequence[str]) -> dict[str, Json]:
    """The schemas of entities, with the names that attributes have in answers for older texts."""
    schemas = entity_schemas(model.full)
    for group, type_ in model.resource_types():
        for name in (f"{group.plural}.{type_.plural}", f"{group.plural}.{type_.plural}.versions"):
            known = schemas[name]["properties"]
            for specversion in specversions:
                for now, then in older_names(specversion, type_).items():
                    if now in known:
                        note = {"description": f"What {specversion} has for {now}.", "readOnly": True}
                        known.setdefault(then, known[now] | note)
    return schemas


@dataclass(frozen=True, slots=True)
class _Describing:
    """Describes what each path does, with the flags that the registry offers."""

    model: Model
    capabilities: Mapping[str, Any]

    def path(self, route: Route) -> Json:
        ids = {"type": "string", "pattern": ecma(IDENTIFIER)}
        named = [{"name": name, "in": "path", "required": True, "schema": ids} for name in route.parameters]
        methods = [each for each in METHODS[route.kind] if each != "PATCH" or not route.is_document]
        operations = {method.lower(): self._operation(route, method) for method in methods}
        return ({"parameters": named} if named else {}) | operations

    def _operation(self, route: Route, method: str) -> Json:
        operation: Json = {"operationId": f"{method.lower()}-{route.name}"}
        headers = document_headers(self._attributes(route)) if route.is_document and method in ("POST", "PUT") else []
        if parameters := [*self._flags(route, method), *headers, *condition_parameters()]:
            operation["parameters"] = parameters
        sent = self._sent(route, method)
        if sent is not None:
            operation["requestBody"] = sent
        return operation | {"responses": self._answers(route, method)}

    def _flags(self, route: Route, method: str) -> Iterator[Json]:
        names = [name for name in self.capabilities["flags"] if _is_meant(name, route, method)]
        if route.kind in COLLECTIONS and method == "GET" and self.capabilities["pagination"]:
            names += ["limit"]
        return ({"$ref": f"#/components/parameters/{name}"} for name in names)

    def _attributes(self, route: Route) -> Mapping[str, Any]:
        if route.group is None:
            return dict(self.model.full["attributes"])
        group = self.model.full["groups"][route.group.plural]
        if route.type is None:
            return dict(group["attributes"])
        resource = group["resources"][route.type.plural]
        return dict(resource["metaattributes" if route.kind == "meta" else "attributes"])

    # -- bodies -----------------------------------------------------------------------------------------------------

    def _sent(self, route: Route, method: str) -> Json | None:
        if method == "GET":
            return None
        if method == "DELETE":
            return body(json_content(EPOCHS), required=False) if route.kind in COLLECTIONS else None
        if route.is_document:
            return body({"*/*": {}}, required=False)
        return body(json_content(self._content(route, method)))

    def _content(self, route: Route, method: str) -> Json:
        """What is sent, and answered, as JSON."""
        if route.kind in COLLECTIONS:
            return map_of(route.schema)
        if method == "POST" and route.kind == "resource":
            return self._whole(route, f"{route.schema}.versions")
        if method == "POST":
            types = self.model.groups if route.group is None else route.group.resources
            prefix = "" if route.group is None else f"{route.schema}."
            held = {plural: map_of(prefix + plural) for plural in types}
            return {"type": "object", "properties": held, "additionalProperties": False}
        return self._whole(route, route.schema) if method == "PUT" else reference(route.schema)

    def _whole(self, route: Route, name: str) -> Json:
        asked = required_in_requests(self._attributes(route))
        return {"allOf": [reference(name), {"required": asked}]} if asked else reference(name)

    def _answers(self, route: Route, method: str) -> Json:
        failures = errors(has_body=self._sent(route, method) is not None)
        if method == "DELETE":
            return {"204": answer("It is gone."), **failures}
        if route.is_document:
            found = {"200": answer("The document, its attributes as headers.", {"*/*": {}})}
            found["303"] = {"$ref": "#/components/responses/elsewhere"}
        else:
            found = {"200": answer("As it is now.", json_content(self._shown(route, method)))}
        if method in ("PUT", "PATCH") or (method, route.kind) == ("POST", "resource"):
            found["201"] = found["200"] | {"description": "It was made, and is as shown."}
        if method == "GET":
            found["304"] = answer("The client has it already (If-None-Match).")
        return {**found, **failures}

    def _shown(self, route: Route, method: str) -> Json:
        if method == "POST" and route.kind == "resource":
            return reference(f"{route.schema}.versions")
        return (
            self._content(route, method) if method == "POST" or route.kind in COLLECTIONS else reference(route.schema)
        )


COLLECTIONS: Final = ("groups", "resources", "versions")
WRITTEN: Final = ("resource", "meta", "versions", "version")


def _is_meant(flag: str, route: Route, method: str) -> bool:
    """Whether a flag says something there."""
    is_read = method == "GET"
    if flag == "epoch":
        return method == "DELETE" and route.kind not in COLLECTIONS
    if flag == "setdefaultversionid":
        return not is_read and route.kind in WRITTEN and (method, route.kind) != ("DELETE", "resource")
    if flag == "collections":
        return route.kind in ("registry", "group") and method != "DELETE"
    if flag == "sort":
        return route.kind in COLLECTIONS and method != "DELETE"
    if flag == "ignore":
        return not is_read
    return method != "DELETE" or flag == "specversion"
