"""`wirebook serve`: a registry, on SQLite or PostgreSQL.

Spec: docs/registry.md
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any

import typer

from wirebook.problems import Problem, WirebookError

LOOPBACK = ("localhost",)


def serve(  # noqa: PLR0917 (options)
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8080,
    db: Annotated[str, typer.Option(help="sqlite:///FILE or postgresql://...")] = "sqlite:///./wirebook.db",
    registryid: Annotated[str, typer.Option(help="Id of the registry, when it is made.")] = "wirebook",
    base_path: Annotated[str, typer.Option(help="Path before all others.")] = "/",
    base_url: Annotated[str | None, typer.Option(help="URL of the registry, whatever requests say.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model of the registry, when it is made: a file, or 'empty'.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse all writes.")] = False,
    write_token_file: Annotated[Path | None, typer.Option(help="File with the bearer token that writes need.")] = None,
    insecure_writes: Annotated[
        bool, typer.Option("--insecure-writes", help="Let anyone write who can reach the server.")
    ] = False,
    cors_origin: Annotated[list[str], typer.Option(help="Origin of pages that may write. Repeatable.")] = [],  # noqa: B006
    allowed_host: Annotated[list[str], typer.Option(help="Host that is answered for. Repeatable.")] = [],  # noqa: B006
    trusted_proxy: Annotated[list[str], typer.Option(help="Network of proxies, as a CIDR. Repeatable.")] = [],  # noqa: B006
    allow_fetch: Annotated[list[str], typer.Option(help="HOST[:PORT] that models may include from. Repeatable.")] = [],  # noqa: B006
    events_sink: Annotated[str | None, typer.Option(help="URL that change events are sent to.")] = None,
    max_page: Annotated[int, typer.Option(help="Most entities on a page.", min=1)] = 1000,
) -> int:
    """Serve a registry of xRegistry 1.0-rc4."""
    from wirebook.httpapi.options import Options  # noqa: PLC0415 (what serves is not needed by other commands)
    from wirebook.httpapi.server import serve as run  # noqa: PLC0415

    options = Options(
        host=host,
        port=port,
        database=db,
        registryid=registryid,
        base_path=base_path,
        base_url=base_url,
        model=_model(model),
        read_only=read_only,
        write_token=_token(write_token_file),
        insecure_writes=insecure_writes,
        cors_origins=tuple(cors_origin),
        allowed_hosts=tuple(allowed_host),
        trusted_proxies=tuple(map(_network, trusted_proxy)),
        allowed_fetches=tuple(allow_fetch),
        events_sink=events_sink,
        max_page=max_page,
    )
    _check_reach(options)
    run(options, lambda line: print(line, flush=True))
    return 0


def _model(text: str | None) -> Path | str | None:
    return text if text in (None, "empty") else Path(text or "")


def _token(file: Path | None) -> str | None:
    """Raises: unreadable-file, bad-setting"""
    if file is None:
        return None
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WirebookError(Problem("unreadable-file", f"cannot read '{file}': {error}", file=str(file))) from None
    if not token:
        raise WirebookError(Problem("bad-setting", f"'{file}' has no token in it", file=str(file)))
    return token


def _network(text: str) -> IPv4Network | IPv6Network:
    """Raises: bad-setting"""
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise WirebookError(Problem("bad-setting", f"--trusted-proxy '{text}' is no network: {error}")) from None


def _check_reach(options: Any) -> None:
    """Others than this machine may write only if that was said. Raises: bad-setting"""
    if _is_loopback(options.host) or options.read_only or options.write_token or options.insecure_writes:
        return
    hint = "add --write-token-file FILE, --read-only, or --insecure-writes"
    raise WirebookError(Problem("bad-setting", f"anyone who can reach '{options.host}' could write", hint=hint))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK
