"""The OpenAPI 3.1 document of a registry: paths, methods, flags and bodies, derived from its model and its routes.

Spec: docs/registry.md#openapi; core/http.md#http-api-patterns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.model.capabilities import Offer, offered_capabilities
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
    document_headers,
    error_responses,
    fixed_paths,
    flag_parameters,
    json_content,
    precondition_components,
    precondition_parameters,
    request_body,
    response,
    shared_responses,
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelPath:
    """A path that the model defines.

    `kind` is that of a `RequestTarget`. `details`: the path ends in ``$details``, so its body is metadata, not a
    document.
    """

    kind: str
    path: str
    parameters: tuple[str, ...] = ()
    group: GroupType | None = None
    type: ResourceType | None = None
    details: bool = False

    @property
    def is_document(self) -> bool:
        """Whether the body is a document, not metadata."""
        has = self.type is not None and self.type.hasdocument
        return self.kind in ("resource", "version") and has and not self.details

    @property
    def schema(self) -> str:
        """The name of the component that describes the entity, or the entities of the collection."""
        if self.group is None:
            return "registry"
        if self.type is None:
            return self.group.plural
        name = f"{self.group.plural}.{self.type.plural}"
        return f"{name}.{'meta' if self.kind == 'meta' else 'versions'}" if self.kind in BELOW else name

    @property
    def name(self) -> str:
        """A unique name, for operation ids."""
        types = [type_.plural for type_ in (self.group, self.type) if type_ is not None]
        return "-".join([*types, self.kind, *(["details"] if self.details else [])])


BELOW: Final = ("meta", "versions", "version")


def model_paths(model: Model) -> Iterator[ModelPath]:
    """Yield every path that the model defines."""
    yield ModelPath("registry", "/")
    for group in model.groups.values():
        yield ModelPath("groups", f"/{group.plural}", (), group)
        path, ids = f"/{group.plural}/{{{group.id_name}}}", (group.id_name,)
        yield ModelPath("group", path, ids, group)
        for type_ in group.resources.values():
            yield from _resource_routes(path, ids, group, type_)


def _resource_routes(base: str, ids: tuple[str, ...], group: GroupType, type_: ResourceType) -> Iterator[ModelPath]:
    path = f"{base}/{type_.plural}"
    yield ModelPath("resources", path, ids, group, type_)
    path, ids = _with_id(path, ids, type_.id_name)
    yield from _with_details(ModelPath("resource", path, ids, group, type_))
    yield ModelPath("meta", f"{path}/meta", ids, group, type_)
    path += "/versions"
    yield ModelPath("versions", path, ids, group, type_)
    path, ids = _with_id(path, ids, "versionid")
    yield from _with_details(ModelPath("version", path, ids, group, type_))


def _with_id(path: str, ids: tuple[str, ...], name: str) -> tuple[str, tuple[str, ...]]:
    """Return the path of an entity in a collection, and its parameters.

    A parameter name that is in use gets a number, because two types may have the same name.
    """
    name = name if name not in ids else f"{name}{len(ids) + 1}"
    return f"{path}/{{{name}}}", (*ids, name)


def _with_details(route: ModelPath) -> Iterator[ModelPath]:
    """Yield a path and, if it addresses a document, the path of its metadata."""
    yield route
    if route.is_document:
        yield ModelPath(route.kind, route.path + DETAILS, route.parameters, route.group, route.type, details=True)


# -- the document ---------------------------------------------------------------------------------------------------


def openapi(
    model: Model,
    capabilities: Mapping[str, Any],
    offer: Offer,
    base: str,
    fixed: Mapping[str, Sequence[str]],
) -> Json:
    """Return the OpenAPI document for the registry at `base`.

    Shape: `fixed` has the methods of the paths that the model does not define.
    """
    operations = _Operations(model, capabilities)
    paths = {route.path: operations.path(route) for route in model_paths(model)} | fixed_paths(fixed)
    capability = {"capabilities": object_schema(offered_capabilities(offer))}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "xRegistry",
            "version": SPECVERSION,
            "description": "An xRegistry service. Every path also supports OPTIONS, and HEAD where it supports GET.",
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {
            "schemas": _entities(model, capabilities["specversions"]) | capability | {"problem": PROBLEM},
            "responses": shared_responses(),
            "parameters": flag_parameters(capabilities) | precondition_components(),
        },
    }


def _entities(model: Model, specversions: Sequence[str]) -> dict[str, Json]:
    """Return the schemas of entities, including the attribute names in responses for older versions of xRegistry."""
    schemas = entity_schemas(model.full)
    for group, type_ in model.resource_types():
        for name in (f"{group.plural}.{type_.plural}", f"{group.plural}.{type_.plural}.versions"):
            known = schemas[name]["properties"]
            for specversion in specversions:
                for now, then in older_names(specversion, type_).items():
                    if now in known:
                        note = {"description": f"The name of {now} in xRegistry {specversion}.", "readOnly": True}
                        known.setdefault(then, known[now] | note)
    return schemas


@dataclass(frozen=True, slots=True)
class _Operations:
    """Describes the operations of each path, with the flags that the registry supports."""

    model: Model
    capabilities: Mapping[str, Any]

    def path(self, route: ModelPath) -> Json:
        """Return the operations of a path."""
        ids = {"type": "string", "pattern": ecma(IDENTIFIER)}
        named = [{"name": name, "in": "path", "required": True, "schema": ids} for name in route.parameters]
        methods = [method for method in METHODS[route.kind] if method != "PATCH" or not route.is_document]
        operations = {method.lower(): self._operation(route, method) for method in methods}
        return ({"parameters": named} if named else {}) | operations

    def _operation(self, route: ModelPath, method: str) -> Json:
        operation: Json = {"operationId": f"{method.lower()}-{route.name}"}
        names = [name for name in self.capabilities["flags"] if _applies(name, route, method)]
        if route.kind in COLLECTIONS and method == "GET" and self.capabilities["pagination"]:
            names += ["limit"]
        flags = [{"$ref": f"#/components/parameters/{name}"} for name in names]
        headers = document_headers(self._attributes(route)) if route.is_document and method in ("POST", "PUT") else []
        if parameters := [*flags, *headers, *precondition_parameters()]:
            operation["parameters"] = parameters
        body = self._request_body(route, method)
        if body is not None:
            operation["requestBody"] = body
        return operation | {"responses": self._responses(route, method, has_body=body is not None)}

    def _attributes(self, route: ModelPath) -> Mapping[str, Any]:
        if route.group is None:
            return dict(self.model.full["attributes"])
        group = self.model.full["groups"][route.group.plural]
        if route.type is None:
            return dict(group["attributes"])
        resource = group["resources"][route.type.plural]
        return dict(resource["metaattributes" if route.kind == "meta" else "attributes"])

    # -- bodies -----------------------------------------------------------------------------------------------------

    def _request_body(self, route: ModelPath, method: str) -> Json | None:
        if method == "GET":
            return None
        if method == "DELETE":
            return request_body(json_content(EPOCHS), required=False) if route.kind in COLLECTIONS else None
        if route.is_document:
            return request_body({"*/*": {}}, required=False)
        return request_body(json_content(self._content(route, method)))

    def _content(self, route: ModelPath, method: str) -> Json:
        """Return the schema of the JSON in a request, which most responses share."""
        if route.kind in COLLECTIONS:
            return map_of(route.schema)
        if method == "POST" and route.kind == "resource":
            return self._complete(route, f"{route.schema}.versions")
        if method == "POST":
            types = self.model.groups if route.group is None else route.group.resources
            prefix = "" if route.group is None else f"{route.schema}."
            collections = {plural: map_of(prefix + plural) for plural in types}
            return {"type": "object", "properties": collections, "additionalProperties": False}
        return self._complete(route, route.schema) if method == "PUT" else reference(route.schema)

    def _complete(self, route: ModelPath, name: str) -> Json:
        """Return the schema of an entity that requires the attributes that a client must send."""
        required = required_in_requests(self._attributes(route))
        return {"allOf": [reference(name), {"required": required}]} if required else reference(name)

    def _responses(self, route: ModelPath, method: str, *, has_body: bool) -> Json:
        failures = error_responses(has_body=has_body)
        if method == "DELETE":
            return {"204": response("The entity or the entities were deleted."), **failures}
        if route.is_document:
            success = {"200": response("The document. Its attributes are headers.", {"*/*": {}})}
            success["303"] = {"$ref": "#/components/responses/elsewhere"}
        else:
            success = {"200": response("The current state.", json_content(self._response_content(route, method)))}
        if method in ("PUT", "PATCH") or (method, route.kind) == ("POST", "resource"):
            success["201"] = success["200"] | {"description": "The entity was created."}
        if method == "GET":
            success["304"] = response("The client has the current representation (If-None-Match).")
        return {**success, **failures}

    def _response_content(self, route: ModelPath, method: str) -> Json:
        if method == "POST" and route.kind == "resource":
            return reference(f"{route.schema}.versions")
        if method == "POST" or route.kind in COLLECTIONS:
            return self._content(route, method)
        return reference(route.schema)


COLLECTIONS: Final = ("groups", "resources", "versions")
WRITTEN: Final = ("resource", "meta", "versions", "version")


def _applies(flag: str, route: ModelPath, method: str) -> bool:
    """Return whether a flag has an effect on an operation."""
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
