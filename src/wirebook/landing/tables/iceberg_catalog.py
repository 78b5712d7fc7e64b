"""The Iceberg catalogue of a target: embedded, as an SQLite file in its folder, or external, such as that of a team.

An external catalogue has a name in the configuration of PyIceberg (``.pyiceberg.yaml``,
``PYICEBERG_CATALOG__NAME__URI``), which has its type, its address and its credentials. The target records only the
name and the namespace, with an id of its own. Each table has the id of the target that writes it, because batch
numbers have no meaning in another target.

Spec: docs/how-to/iceberg-catalogues.md; docs/decisions/0204
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from wirebook.landing.stores.locations import Location, is_file_system
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.stores.records import records_of
from wirebook.landing.tables.layout import NO_DEFINITION
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library, missing_extra

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

__all__ = [
    "NAMESPACE",
    "OWNER",
    "CatalogPlace",
    "TargetCatalog",
    "catalog_failures",
    "catalog_of",
    "place_for",
    "place_of",
    "reason_of",
    "redacted",
    "remember",
    "uri_of",
]

NAMESPACE: Final = "wirebook"
"""The default namespace."""
OWNER: Final = "wirebook.target"
"""The table property with the id of the target that writes the table."""
RECORD: Final = "iceberg.json"
SQLITE: Final = "wirebook"
"""The name of the embedded catalogue."""
NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
MAX_REASON: Final = 300
CONNECT_SECONDS: Final = 10
ANSWER_SECONDS: Final = 120
"""How long a REST catalogue or a Hive metastore may take to respond. A commit to a large table may take a minute."""
FILE_IO: Final = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
"""By default PyIceberg reads Azure with a package that it does not require."""
FROM_ENVIRONMENT: Final = {
    "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "adls.account-name": ("AZURE_STORAGE_ACCOUNT_NAME",),
    "adls.account-key": ("AZURE_STORAGE_ACCOUNT_KEY",),
    "adls.tenant-id": ("AZURE_TENANT_ID",),
    "adls.client-id": ("AZURE_CLIENT_ID",),
    "adls.client-secret": ("AZURE_CLIENT_SECRET",),
}
"""Settings that `obstore` reads from environment variables but PyIceberg does not. PyIceberg's configuration
overrides them."""
SECRET: Final = re.compile(r"secret|token|password|credential|key|sas-|connection-string|header\.")
OUTAGES: Final = {
    "requests.RequestException",
    "sqlalchemy.OperationalError",
    "sqlalchemy.InterfaceError",
    "botocore.BotoCoreError",
    "thrift.TTransportException",
    "pyiceberg.AuthorizationExpiredError",
    "pyiceberg.OAuthError",
    "pyiceberg.ServiceUnavailableError",
    "pyiceberg.TooManyRequestsError",
    "pyiceberg.UnauthorizedError",
}
"""Exceptions of a catalogue that does not respond or rejects every request, by package and class."""


class CatalogPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The external catalogue of a target: its name, and the namespace of the tables, with dots between its levels.
    `target` is the id of the target."""

    catalog: str
    namespace: str
    target: str

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.namespace.split("."))


# -- the record in the target ---------------------------------------------------------------------------------------


def place_for(root: Location, catalog: str | None, namespace: str | None, *, has_tables: bool) -> CatalogPlace | None:
    """The external catalogue of a target, which must agree with the `catalog` and the `namespace` that a run names,
    if it names them. None: the target has the embedded catalogue.

    Raises: WirebookError (iceberg-catalog-differs, bad-setting, unsupported-store)
    """
    if isinstance(root, ObjectPath) and root.bucket.startswith("az:"):
        message = f"PyIceberg does not know the scheme of '{root}'"
        hint = "write the URL as abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
        raise WirebookError(Problem("unsupported-store", message, expected="abfss", actual="az", hint=hint))
    if is_file_system(root) and not isinstance(root, Path):
        message = f"PyIceberg reaches HDFS with Hadoop's native library only, so that '{root}' has no Iceberg tables"
        hint = "choose another format, as in --format delta, or another store"
        expected = "delta or parquet"
        raise WirebookError(Problem("unsupported-store", message, expected=expected, actual="iceberg", hint=hint))
    place = place_of(root, again=True)
    if catalog is None and namespace is None:
        return place
    if place is None and has_tables:
        message = f"the Iceberg tables of '{root}' are in the catalogue of its folder, not in '{catalog}'"
        hint = "omit the catalogue, or choose another target"
        raise WirebookError(Problem("iceberg-catalog-differs", message, actual=catalog, hint=hint))
    if place is None:
        return _new_place(catalog, namespace)
    for what, known, named in (("catalogue", place.catalog, catalog), ("namespace", place.namespace, namespace)):
        if named is not None and named != known:
            message = f"the Iceberg tables of '{root}' are in the {what} '{known}', not in '{named}'"
            hint = f"omit the {what}, or choose another target"
            raise WirebookError(Problem("iceberg-catalog-differs", message, expected=known, actual=named, hint=hint))
    return place


def _new_place(catalog: str | None, namespace: str | None) -> CatalogPlace:
    if catalog is None:
        message = f"the namespace '{namespace}' needs the name of a catalogue"
        raise WirebookError(Problem("bad-setting", message, hint="name it with --iceberg-catalog"))
    place = CatalogPlace(
        catalog=catalog, namespace=NAMESPACE if namespace is None else namespace, target=uuid.uuid4().hex
    )
    for value in (catalog, *place.levels):
        if not NAME.fullmatch(value):
            message = f"'{value}' is not a name of an Iceberg catalogue or of a level of a namespace"
            hint = "use letters, digits, '_' and '-'; separate the levels of a namespace by dots"
            raise WirebookError(Problem("bad-setting", message, actual=value, hint=hint))
    return place


def place_of(root: Location, *, again: bool = False) -> CatalogPlace | None:
    """The external catalogue that a target has recorded; None if it has the embedded one. The record is cached. It is
    read `again` at the beginning of a run, because the target may have been deleted since."""
    if again:
        _remembered.cache_clear()
    try:
        return _remembered(root.absolute())
    except FileNotFoundError:
        return None


def remember(root: Location, place: CatalogPlace) -> None:
    """Create the namespace, if it does not exist, and record the catalogue in the target.

    Raises: WirebookError (iceberg-catalog-differs, iceberg-catalog-failed, missing-extra, target-locked)
    """
    if place_of(root) is not None:
        return
    catalog = TargetCatalog.of(place)
    with catalog_failures(place.catalog):
        catalog.create_namespace(place.levels)
        tables = [table for name in NO_DEFINITION if (table := catalog.load(name)) is not None]
    for table in tables:
        if not catalog.owns(table):
            name = table.name()[-1]
            message = f"'{place.namespace}' in the catalogue '{place.catalog}' has the table '{name}' of something else"
            hint = "choose another namespace with --iceberg-namespace: each target needs its own"
            raise WirebookError(Problem("iceberg-catalog-differs", message, actual=place.namespace, hint=hint))
    try:
        records_of(root).create(RECORD, msgspec.json.encode(place))
    except FileExistsError as error:
        message = f"another run has taken over '{root}'"
        hint = "run the command again once the other has ended"
        raise WirebookError(Problem("target-locked", message, hint=hint)) from error


@lru_cache(maxsize=64)
def _remembered(root: Location) -> CatalogPlace:
    """Read the record, which never changes.

    Raises: FileNotFoundError (which is not cached), broken-target, store-failed
    """
    path = records_of(root).location(RECORD)
    try:
        return msgspec.json.decode(path.read_bytes(), type=CatalogPlace)
    except msgspec.DecodeError as error:
        message = f"cannot read '{path}' in the target folder: {error}"
        raise WirebookError(Problem("broken-target", message, file=str(path))) from error


# -- the catalogue -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetCatalog:
    """The catalogue of one target. `owner` is the id of the target; None for the embedded catalogue, which has only
    tables of the target."""

    name: str
    catalog: Catalog
    namespace: tuple[str, ...]
    owner: str | None = None

    @classmethod
    def of(cls, place: CatalogPlace) -> TargetCatalog:
        """Raises: WirebookError (iceberg-catalog-failed, missing-extra)"""
        return cls(place.catalog, _connected(place.catalog), place.levels, place.target)

    def check(self) -> None:
        """Check that the catalogue responds and has the namespace. Raises: iceberg-catalog-failed"""
        with catalog_failures(self.name):
            exists = self.catalog.namespace_exists(self.namespace)
        if not exists:
            message = f"the catalogue '{self.name}' has no namespace '{'.'.join(self.namespace)}'"
            raise WirebookError(Problem("iceberg-catalog-failed", message, hint="create the namespace again"))

    def identifier(self, table: str) -> tuple[str, ...]:
        """The name of a table in the catalogue. A name without a namespace is in the namespace of the target."""
        *namespace, name = table.split(".")
        return *(namespace or self.namespace), name

    def own_name(self, name: str) -> str:
        """The name of a table without the catalogue and the namespace of the target. The first level is a catalogue if
        PyIceberg's configuration has one of this name, as in Spark.

        Raises: table-settings, if it is another catalogue
        """
        first, *levels = name.split(".")
        if levels and first == self.name:
            name = ".".join(levels)
        elif levels and self.owner is not None and _configured(first) is not None:
            message = (
                f"the table '{name}' would be in the catalogue '{first}'; those of the target are in '{self.name}'"
            )
            hint = f"land into another target, or write '{self.name}.{name}' if '{first}' is a namespace"
            raise WirebookError(Problem("table-settings", message, expected=self.name, actual=first, hint=hint))
        return name.removeprefix(f"{'.'.join(self.namespace)}.")

    def create_namespace(self, levels: tuple[str, ...]) -> None:
        """Create a namespace and the levels above it, unless they exist."""
        for level in (levels[:depth] for depth in range(1, len(levels) + 1)):
            if not self.catalog.namespace_exists(level):
                try:
                    self.catalog.create_namespace_if_not_exists(level)
                except Exception:  # a database error, if another thread or program was faster
                    if not self.catalog.namespace_exists(level):
                        raise

    def load(self, table: str) -> Table | None:
        """The current state of a table; None if it does not exist."""
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415 (an extra)

        try:
            return self.catalog.load_table(self.identifier(table))
        except NoSuchTableError:
            return None

    def create(self, place: TablePlace, schema: pa.Schema) -> Table:
        """Create a table and its namespace, unless they exist. Its data and metadata are in its folder."""
        properties = {OWNER: self.owner} if self.owner else {}
        identifier, location = self.identifier(place.name), uri_of(place.folder)
        if identifier[:-1] != self.namespace:
            self.create_namespace(identifier[:-1])
        return self.catalog.create_table_if_not_exists(identifier, schema, location=location, properties=properties)

    def owns(self, table: Table) -> bool:
        """Whether this target may write to the table."""
        return self.owner is None or table.properties.get(OWNER) == self.owner

    @contextmanager
    def outages(self) -> Iterator[None]:
        """Convert the exceptions of a catalogue that does not respond or rejects every request, and no others.

        Raises: iceberg-catalog-failed
        """
        try:
            yield
        except Exception as error:
            names = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
            if not names & OUTAGES:
                raise
            raise _failed(self.name, error) from error


def catalog_of(root: Location) -> TargetCatalog:
    """The catalogue of a target.

    Raises: WirebookError (iceberg-catalog-failed, missing-extra, unsupported-store)
    """
    library("pyiceberg.catalog.sql")
    place = place_of(root)
    if place is not None:
        return TargetCatalog.of(place)
    if isinstance(root, ObjectPath):
        message = f"the embedded Iceberg catalogue is a file, which '{root}' cannot have"
        hint = "name a catalogue of your team, as in --iceberg-catalog lake, or choose --format delta"
        expected = "an Iceberg catalogue, or delta"
        raise WirebookError(Problem("unsupported-store", message, expected=expected, actual="iceberg", hint=hint))
    return TargetCatalog(SQLITE, _embedded(root.absolute()), (NAMESPACE,))


def uri_of(location: Location) -> str:
    """The location as a URI in the metadata of Iceberg."""
    return str(location) if isinstance(location, ObjectPath) else f"file://{location.absolute()}"


def _embedded(root: Path) -> Catalog:
    """The embedded catalogue in a folder."""
    file = root / "_wirebook" / "iceberg.db"
    file.touch()
    return _opened(root, file.stat().st_ino)


@lru_cache(maxsize=4)
def _opened(root: Path, _inode: int) -> Catalog:
    """The embedded catalogue in a folder. The inode makes the cache open a new file if the old one was deleted, to
    which cached connections would still write.

    Raises: iceberg-catalog-failed
    """
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

    with catalog_failures(SQLITE):  # the disk may be full
        catalog = SqlCatalog(SQLITE, uri=f"sqlite:///{root}/_wirebook/iceberg.db", warehouse=uri_of(root))
        catalog.create_namespace_if_not_exists(NAMESPACE)
    return catalog


@lru_cache(maxsize=4)
def _connected(name: str) -> Catalog:
    """The catalogue of this name in the configuration of PyIceberg. Raises: iceberg-catalog-failed, missing-extra"""
    library("pyiceberg.catalog.sql")
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    with catalog_failures(name):
        catalog = load_catalog(name, **_settings(name))
    session: Any = getattr(catalog, "_session", None)  # of a REST catalogue, whose requests have no timeout by default
    if session is not None:
        session.request = partial(session.request, timeout=(CONNECT_SECONDS, ANSWER_SECONDS))
    client: Any = getattr(catalog, "_client", None)  # of a Hive catalogue, which has no timeout either
    if hasattr(client, "_init_thrift_transport"):
        client._init_thrift_transport = partial(_with_timeout, client._init_thrift_transport)
        vars(catalog)["_client"] = _HiveConnections(client)
    return catalog


class _HiveConnections:
    """Opens a connection to a Hive metastore for each `with` block. The client of PyIceberg shares one connection
    between threads, but the tables of a store are committed concurrently."""

    def __init__(self, client: Any) -> None:
        client._was_opened = True  # so that a copy opens a connection of its own
        self._client, self._threads = client, threading.local()

    def __enter__(self) -> Any:
        client = copy(self._client)
        opened = client.__enter__()
        self._clients().append(client)
        return opened

    def __exit__(self, *raised: Any) -> None:
        self._clients().pop().__exit__(*raised)

    def _clients(self) -> list[Any]:
        """The clients of the `with` blocks that the current thread is in."""
        clients: list[Any] = vars(self._threads).setdefault("clients", [])
        return clients


def _with_timeout(connect: Callable[[], Any]) -> Any:
    """Connect to a Hive metastore with a socket timeout, for which PyIceberg has no setting."""
    transport = connect()
    for part in vars(transport).values():
        if hasattr(part, "setTimeout"):
            part.setTimeout(ANSWER_SECONDS * 1000)
    return transport


def _settings(name: str) -> dict[str, Any]:
    """The settings of a catalogue. Raises: iceberg-catalog-failed"""
    from pyiceberg.utils.config import Config  # noqa: PLC0415

    settings = _configured(name)
    if settings is None:
        known = Config().get_known_catalogs()
        message = f"PyIceberg's configuration has no catalogue '{name}'; it has {', '.join(sorted(known)) or 'none'}"
        variable = f"PYICEBERG_CATALOG__{name.upper().replace('-', '_')}__URI"
        hint = f"add it to ~/.pyiceberg.yaml, or set {variable}"
        raise WirebookError(Problem("iceberg-catalog-failed", message, expected=known, actual=name, hint=hint))
    return settings


def _configured(name: str) -> dict[str, Any] | None:
    """The settings of a catalogue in PyIceberg's configuration, with defaults for its file system from environment
    variables. None if the catalogue is not configured."""
    from pyiceberg.utils.config import Config  # noqa: PLC0415

    configured = Config().get_catalog_config(name)
    if configured is None:
        return None
    settings: dict[str, Any] = dict(FILE_IO)
    for setting, variables in FROM_ENVIRONMENT.items():
        if value := next((os.environ[variable] for variable in variables if os.environ.get(variable)), None):
            settings[setting] = value
    return settings | configured


@contextmanager
def catalog_failures(name: str) -> Iterator[None]:
    """Convert all exceptions of PyIceberg. Raises: iceberg-catalog-failed, missing-extra"""
    try:
        yield
    except WirebookError:
        raise
    except ImportError as error:
        raise missing_extra(error) or _failed(name, error) from error
    except Exception as error:
        raise _failed(name, error) from error


def _failed(name: str, error: Exception) -> WirebookError:
    """The error of a catalogue, without the secrets that messages of PyIceberg and of drivers may include."""
    message = f"the Iceberg catalogue '{name}' refused a request or did not answer: {reason_of(name, error)}"
    what = "the disk of the target" if name == SQLITE else "the catalogue in PyIceberg's configuration, and the network"
    hint = f"check {what}; then run the command again"
    return WirebookError(Problem("iceberg-catalog-failed", message, hint=hint))


def reason_of(name: str, error: Exception) -> str:
    """The type and message of an exception in one line, without secrets of the catalogue."""
    text = f"{type(error).__name__}: {redacted(name, str(error))}"
    return " ".join(text.split())[:MAX_REASON].removesuffix(":")


def redacted(name: str, text: str) -> str:
    """A text without secrets of the catalogue."""
    text = re.sub(r"(?<=://)[^/@\s]*@", "", text)
    for secret in _secrets(_configured(name) or {}):
        text = text.replace(secret, "...")
    return text


def _secrets(settings: Mapping[str, Any], *, is_secret: bool = False) -> Iterator[str]:
    """The values of settings whose names mark them as secrets, at any depth."""
    for setting, value in settings.items():
        hidden = is_secret or SECRET.search(setting) is not None
        if isinstance(value, Mapping):
            yield from _secrets(value, is_secret=hidden)
        elif hidden and len(str(value)) > 3:
            yield str(value)
