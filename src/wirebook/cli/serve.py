"""`wirebook serve`: serve a registry over HTTP, stored in SQLite or PostgreSQL.

Spec: docs/registry.md
"""

from __future__ import annotations

import re
import sys
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from wirebook.cli.options import STANDARD_INPUT
from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from wirebook.httpapi.handlers.context import FitToModel

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
TIME: Final = re.compile(r"(?P<number>[1-9][0-9]{0,8})(?P<unit>[smhd])")
FORMATS: Final = ("text", "json")
PATH: Final = re.compile(r"/?(?:[A-Za-z0-9._~\-]+(?:/[A-Za-z0-9._~\-]+)*/?)?")
ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.\-]*://[^\s/?#]+")


def serve(  # noqa: PLR0917 (options)
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for a free port.", min=0, max=65535)] = 8080,
    db: Annotated[str, typer.Option(help="Database: sqlite:///FILE or postgresql://...")] = "sqlite:///./wirebook.db",
    registryid: Annotated[str, typer.Option(help="Id of a new registry.")] = "wirebook",
    base_path: Annotated[str, typer.Option(help="Path prefix of all URLs.")] = "/",
    base_url: Annotated[
        str | None, typer.Option(help="Public URL of the registry. Default: that of each request.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model of a new registry: a file, - for standard input, or 'empty'."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Reject all writes.")] = False,
    write_token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token that writes require.")
    ] = None,
    insecure_writes: Annotated[
        bool, typer.Option("--insecure-writes", help="Allow writes without a token from other machines.")
    ] = False,
    cors_origin: Annotated[list[str], typer.Option(help="Origin of web pages that may write. Repeatable.")] = [],  # noqa: B006
    allowed_host: Annotated[
        list[str],
        typer.Option(help="HOST[:PORT] of accepted requests. Repeatable. Default: on loopback its names, else any."),
    ] = [],  # noqa: B006
    trusted_proxy: Annotated[
        list[str], typer.Option(help="Network of trusted proxies in CIDR notation. Repeatable.")
    ] = [],  # noqa: B006
    allow_fetch: Annotated[
        list[str], typer.Option(help="HOST[:PORT] that models may include documents from. Repeatable.")
    ] = [],  # noqa: B006
    events_sink: Annotated[str | None, typer.Option(help="URL to send change events to.")] = None,
    events_keep: Annotated[str, typer.Option(help="Retention of change events, such as 90s, 30m, 24h or 7d.")] = "24h",
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every request.")] = False,
    log_format: Annotated[str, typer.Option(help="Log format: text or json.")] = "text",
    strict_json_schema: Annotated[
        bool,
        typer.Option(
            "--strict-json-schema", help="Treat a property added to an open JSON Schema object as incompatible."
        ),
    ] = False,
    max_page: Annotated[int, typer.Option(help="Maximum entities per page.", min=1)] = 1000,
    max_body: Annotated[int, typer.Option(help="Maximum size of a request body in MiB.", min=1)] = 64,
    max_response: Annotated[
        int, typer.Option(help="Maximum size of a response in MiB; exports may be larger.", min=1)
    ] = 256,
    request_timeout: Annotated[str, typer.Option(help="Maximum time of a request.")] = "30s",
    stream_timeout: Annotated[
        str, typer.Option(help="Maximum time to transfer a body, a response or an export.")
    ] = "300s",
) -> int:
    """Serve a registry over the HTTP API of xRegistry 1.0-rc4."""
    from wirebook.httpapi.handlers.context import MIB  # noqa: PLC0415 (other commands do not need the server)
    from wirebook.httpapi.options import ServerOptions  # noqa: PLC0415 (as above)
    from wirebook.httpapi.server import serve as run  # noqa: PLC0415

    options = ServerOptions(
        host=host,
        port=port,
        database=db,
        registryid=_id(registryid),
        base_path=_matching("--base-path", base_path, PATH, "path, such as /registry"),
        base_url=_url("--base-url", base_url),
        model=_model(model),
        read_only=read_only,
        write_token=read_token(write_token_file),
        insecure_writes=insecure_writes,
        cors_origins=tuple(
            _matching("--cors-origin", origin, ORIGIN, "origin, such as https://host") for origin in cors_origin
        ),
        allowed_hosts=tuple(_allowed("--allowed-host", name) for name in allowed_host),
        trusted_proxies=tuple(map(_network, trusted_proxy)),
        allowed_fetches=tuple(_allowed("--allow-fetch", name) for name in allow_fetch),
        events_sink=_url("--events-sink", events_sink),
        events_keep=seconds_of("--events-keep", events_keep),
        access_log=access_log,
        log_format=_one_of("--log-format", log_format, FORMATS),
        strict_json_schema=strict_json_schema,
        max_page=max_page,
        max_body=max_body * MIB,
        max_response=max_response * MIB,
        request_timeout=seconds_of("--request-timeout", request_timeout),
        stream_timeout=seconds_of("--stream-timeout", stream_timeout),
    )
    _check_write_access(options)
    run(options, lambda line: print(line, flush=True), read_catalogue)
    return 0


def read_catalogue(body: bytes) -> FitToModel:
    """Read the body of an import request. Raises: WirebookError"""
    from wirebook.catalog.importing import read_import  # noqa: PLC0415 (other requests do not need it)

    return read_import(body, "the body").fit


def _model(text: str | None) -> Path | str | bytes | None:
    if text == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    return text if text in (None, "empty") else Path(text or "")


def read_token(file: Path | None) -> str | None:
    """Return the token in a file. Raises: WirebookError (``unreadable-file``, ``bad-setting``)"""
    if file is None:
        return None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WirebookError(Problem("unreadable-file", f"cannot read '{file}': {reason}", file=str(file))) from None
    if not token:
        raise WirebookError(Problem("bad-setting", f"'{file}' is empty; write a token into it", file=str(file)))
    return token


def _network(text: str) -> IPv4Network | IPv6Network:
    """Raises: bad-setting"""
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise WirebookError(Problem("bad-setting", f"--trusted-proxy '{text}' is not a network: {error}")) from None


def _id(text: str) -> str:
    """Raises: bad-setting"""
    from wirebook.core.names import IDENTIFIER_IN_WORDS, is_identifier  # noqa: PLC0415 (as above)

    if not is_identifier(text):
        raise WirebookError(Problem("bad-setting", f"--registryid '{text}' is not a valid id: {IDENTIFIER_IN_WORDS}"))
    return text


def _matching(option: str, text: str, allowed: re.Pattern[str], what: str) -> str:
    """Raises: bad-setting"""
    if not allowed.fullmatch(text):
        raise WirebookError(Problem("bad-setting", f"{option} '{text}' is not a valid {what}"))
    return text


def _url(option: str, text: str | None) -> str | None:
    """Raises: bad-setting"""
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise WirebookError(
            Problem("bad-setting", f"{option} '{text}' is not a URL that begins with http:// or https://")
        )
    return text


def seconds_of(option: str, text: str) -> float:
    """Return the seconds of a time with a unit. Raises: bad-setting"""
    time = TIME.fullmatch(text)
    if time is None:
        raise WirebookError(Problem("bad-setting", f"{option} '{text}' is not a time such as 90s, 30m, 24h or 7d"))
    return int(time["number"]) * UNITS[time["unit"]]


def _one_of(option: str, text: str, allowed: tuple[str, ...]) -> str:
    """Raises: bad-setting"""
    if text not in allowed:
        raise WirebookError(Problem("bad-setting", f"{option} '{text}' is not one of {', '.join(allowed)}"))
    return text


def _allowed(option: str, text: str) -> Any:
    """Raises: bad-setting"""
    from wirebook.httpapi.http.hosts import parse_allowed_host  # noqa: PLC0415 (as above)

    try:
        return parse_allowed_host(text)
    except ValueError as error:
        raise WirebookError(Problem("bad-setting", f"{option} {error}")) from None


def _check_write_access(options: Any) -> None:
    """Check that an option allows or prevents writes if other machines can connect. Raises: bad-setting"""
    from wirebook.httpapi.http.hosts import is_loopback  # noqa: PLC0415 (as above)

    if is_loopback(options.host) or options.read_only or options.write_token or options.insecure_writes:
        return
    hint = "add --write-token-file FILE, --read-only, or --insecure-writes"
    raise WirebookError(
        Problem("bad-setting", f"anyone who can reach '{options.host}' could write to the registry", hint=hint)
    )
