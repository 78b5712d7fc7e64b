"""Reading a registry from its server: the root or a group, with all collections below it.

The client requests everything inline. Collections that the response omits are fetched from their ``<COLLECTION>url``,
page by page and on the same origin, and inserted, so that the result equals an export.

Spec: core/spec.md#collections-in-api-view; core/http.md; pagination/spec.md.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import httpx

from wirebook.client.fetch import DEFAULT_FETCH_LIMITS, Cache, Fetcher, FetchLimits
from wirebook.core.names import GROUP_TYPES, collection_of
from wirebook.core.xid import parse_xid
from wirebook.problems import Problem, WirebookError
from wirebook.text.json_documents import read_json
from wirebook.text.source import DEFAULT_LIMITS, DocumentLimits, Source
from wirebook.text.yaml import read_yaml

YAML_TYPES: Final = (
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "text/vnd.yaml",
    "application/cloudevents-registry+yaml",
)
DETAILS: Final = "$details"
DOCUMENT: Final = ("schema", "schemabase64", "schemaurl")
# Attributes of a schema that its default Version does not have.
RESOURCE_ONLY: Final = ("meta", "metaurl", "versions", "versionsurl", "versionscount", "self", "xid")


def fetch_registry(
    url: str,
    limits: DocumentLimits = DEFAULT_LIMITS,
    fetch_limits: FetchLimits = DEFAULT_FETCH_LIMITS,
    cache: Cache | None = None,
) -> Source:
    """Return the document at `url`, including all collections that the server has at other URLs of the same origin.

    A document that cannot be fetched completely is an error, because messages of its missing definitions would not
    match. `cache` keeps responses between calls.

    Raises: WirebookError (``fetch-failed``, ``fetch-limit``, and those of `read_json` and `read_yaml`)
    """
    with Fetcher(url, fetch_limits, {} if cache is None else cache) as fetcher:
        return _RegistryReader(fetcher, limits).read()


class _RegistryReader:
    """Reads entities and collections of one server. Paging stops at a page that was already read."""

    def __init__(self, fetcher: Fetcher, limits: DocumentLimits) -> None:
        self.fetcher, self.limits = fetcher, limits
        self.requested: set[str] = set()
        self.problems: list[Problem] = []

    def read(self) -> Source:
        source, following = self._root()
        if not isinstance(source.value, dict):
            return source
        value = self._pages(dict(source.value), following)
        if collection := collection_of(value):
            whole = {collection: value}
            self._complete(whole, (collection,))
            value = whole[collection]
        else:  # a registry or a group
            xid = parse_xid(value.get("xid"))
            self._complete(value, tuple(GROUP_TYPES) if xid is None else (GROUP_TYPES[xid.groups][1],))
        return Source(self.fetcher.url, value, tuple(self.problems), source.find_places)

    def _root(self) -> tuple[Source, str | None]:
        """Return the document, with everything inline if the server supports `inline`."""
        source, following = self._page(self.fetcher.url)
        url = httpx.URL(self.fetcher.url)
        if _omits_collections(source.value) and not url.query:
            try:
                return self._page(str(url.copy_merge_params({"inline": "*"})))
            except WirebookError as error:
                if not isinstance(error.problems[0].actual, int):
                    raise
        return source, following

    # -- responses ------------------------------------------------------------------------------------------------

    def _page(self, url: str) -> tuple[Source, str | None]:
        self.requested.add(url)
        response = self.fetcher.get(url)
        path = httpx.URL(response.url).path
        is_yaml = response.media_type in YAML_TYPES or path.endswith((".yaml", ".yml"))
        source = (read_yaml if is_yaml else read_json)(response.body, response.url, self.limits)
        return self._with_problems(source), response.next

    def _with_problems(self, source: Source) -> Source:
        """Add the problems of a response to those of the document."""
        self.problems.extend(problem.at(file=self.fetcher.url) for problem in source.problems)
        return source

    def _pages(self, members: dict[str, Any], following: str | None) -> dict[str, Any]:
        """Return `members` and those of the following pages."""
        while following is not None and following not in self.requested:
            source, following = self._page(following)
            if isinstance(source.value, dict):
                members |= source.value
        return members

    def _collection(self, url: str) -> dict[str, Any]:
        source, following = self._page(url)
        if not isinstance(source.value, dict):
            message = f"'{url}' is not a collection: expected a JSON object, got {type(source.value).__name__}"
            raise WirebookError(Problem(code="fetch-failed", message=message, file=url))
        return self._pages(dict(source.value), following)

    # -- contents of an entity -----------------------------------------------------------------------------------

    def _complete(self, entity: dict[str, Any], collections: tuple[str, ...]) -> None:
        """Insert the collections of an entity, recursively."""
        for collection in collections:
            self._inline(entity, collection)
            if not isinstance(members := entity.get(collection), dict):
                continue
            entity[collection] = members = dict(members)
            for key, member in members.items():
                if not isinstance(member, dict):
                    continue
                members[key] = own = dict(member)
                if collection in GROUP_TYPES:
                    self._complete(own, (GROUP_TYPES[collection][1],))
                elif collection in ("schemas", "versions"):
                    self._complete_schema(own)

    def _inline(self, entity: dict[str, Any], collection: str) -> None:
        """Replace ``<collection>url`` by the collection, unless the entity has it."""
        url = entity.get(f"{collection}url")
        if not isinstance(url, str) or url.startswith("#"):
            return
        if collection not in entity and entity.get(f"{collection}count") != 0:
            url = str(httpx.URL(self.fetcher.url).join(url))
            if not self.fetcher.same_origin(url):
                self._report_foreign(url)
                return
            entity[collection] = (
                self._documents(url) if collection in ("schemas", "versions") else self._collection(url)
            )
        entity.setdefault(collection, {})
        del entity[f"{collection}url"]
        entity.pop(f"{collection}count", None)

    def _report_foreign(self, url: str) -> None:
        message = f"'{url}' has another origin than '{self.fetcher.url}' and was not followed"
        self.problems.append(Problem(code="foreign-origin", message=message, file=self.fetcher.url, actual=url))

    # -- schemas and their documents --------------------------------------------------------------------------

    def _documents(self, url: str) -> dict[str, Any]:
        """Return a collection of schemas or Versions with their documents inline, if the server supports it."""
        try:
            return self._collection(str(httpx.URL(url).copy_merge_params({"inline": "schema"})))
        except WirebookError as error:
            if [problem.actual for problem in error.problems] != [400]:
                raise
        return self._collection(url)

    def _complete_schema(self, schema: dict[str, Any]) -> None:
        """Insert the document of a schema or Version, and the Versions if there are several."""
        if not any(name in schema for name in DOCUMENT):
            self._read_document(schema)
        if schema.get("versionscount") != 1:
            self._complete(schema, ("versions",))
        if "versions" not in schema and isinstance(schema.get("versionid"), str) and "versionsurl" in schema:
            default = {name: value for name, value in schema.items() if name not in RESOURCE_ONLY}
            schema["versions"] = {schema["versionid"]: default}

    def _read_document(self, schema: dict[str, Any]) -> None:
        """Fetch the document of a schema that no response contained."""
        address = schema.get("self")
        if not isinstance(address, str) or "://" not in address:
            return
        if not self.fetcher.same_origin(address):
            self._report_foreign(address)
            return
        response = self.fetcher.get(address.removesuffix(DETAILS))
        try:
            if response.media_type.endswith("json"):
                schema["schema"] = self._with_problems(read_json(response.body, response.url, self.limits)).value
            else:
                schema["schema"] = response.body.decode("utf-8")
        except (WirebookError, UnicodeDecodeError):
            schema["schemabase64"] = base64.b64encode(response.body).decode("ascii")


def _omits_collections(value: Any) -> bool:
    """Return whether a response has the URLs of some collections instead of the collections."""
    members = value.values() if isinstance(value, dict) and "xid" not in value else [value]
    entities = [member for member in members if isinstance(member, dict) and "xid" in member]
    return any(
        name.endswith("url") and f"{name.removesuffix('url')}count" in entity and name.removesuffix("url") not in entity
        for entity in entities
        for name in entity
    )
