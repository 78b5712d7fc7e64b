"""`wirebook capture`: receive the messages of endpoints and write them to segments, which are files of capture lines.

Spec: docs/how-to/capture.md
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wirebook.cli.options import (
    CatalogOption,
    MetricsOption,
    ProgressFormat,
    SecretsOption,
    SetOption,
    address_of,
    pairs_of,
)
from wirebook.cli.output import print_event, print_note, printable
from wirebook.cli.serve import seconds_of
from wirebook.cli.sources import load_catalog
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.capture.status import GatewayStatus

MIB = 1 << 20


def capture(  # noqa: PLR0917 (options)
    catalog: CatalogOption,
    endpoint: Annotated[list[str], typer.Option(help="XID of an endpoint to receive from. Repeatable.")],
    to: Annotated[
        str,
        typer.Option("--to", metavar="FOLDER", help="Folder of the segments, or its URL; created if missing."),
    ],
    set_: SetOption = None,
    secrets: SecretsOption = None,
    segment_size: Annotated[int, typer.Option(help="MiB after which a segment is complete.", min=1)] = 64,
    segment_age: Annotated[
        str, typer.Option(help="Time after which a segment is complete, such as 10s or 5m.")
    ] = "60s",
    linger: Annotated[
        float, typer.Option(help="Object stores only: seconds for which messages are collected into one object.", min=0)
    ] = 1,
    memory: Annotated[
        int, typer.Option(help="MiB of messages in memory, above which the gateway stops reading.", min=1)
    ] = 64,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address of the HTTP server. Default: that of the endpoint."),
    ] = None,
    max_body: Annotated[int, typer.Option(help="Maximum size of an HTTP body in MiB.", min=1, max=48)] = 8,
    rate_limit: Annotated[
        int | None, typer.Option(help="HTTP requests per second and endpoint; more get 429.", min=1)
    ] = None,
    allow_origin: Annotated[
        list[str], typer.Option(help="Origin that may send webhooks; *: any. Repeatable. Default: any.")
    ] = [],  # noqa: B006
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Accept HTTP messages without a token from other machines.")
    ] = False,
    metrics_address: MetricsOption = None,
    progress: Annotated[
        ProgressFormat, typer.Option(help="Format of progress lines on standard error.")
    ] = ProgressFormat.TEXT,
    interval: Annotated[str, typer.Option(help="Time between progress lines.")] = "10s",
) -> int:
    """Receive messages of endpoints and write them, unchanged, to segments of capture lines.

    A message is acknowledged after it is durable. `wirebook land FOLDER` reads complete segments.

    Exit codes: 0 stopped by SIGTERM, 2 cannot run, 130 stopped by Ctrl-C.
    """
    from wirebook.capture.endpoints import (  # noqa: PLC0415 (other commands do not need the gateway)
        HttpOptions,
        check_secrets,
        credentials_of,
        read_secrets,
    )
    from wirebook.capture.segments import SegmentFolder  # noqa: PLC0415
    from wirebook.capture.service import Gateway, GatewayOptions  # noqa: PLC0415
    from wirebook.landing.stores.locations import location_of  # noqa: PLC0415
    from wirebook.landing.stores.segments import ObjectSegments  # noqa: PLC0415

    stored = read_secrets(secrets)
    loaded = load_catalog(catalog)
    for xid in endpoint:
        loaded.check_endpoint(xid)
    check_secrets(stored, loaded, secrets)
    options = GatewayOptions(
        endpoints=endpoint,
        values=pairs_of("--set", set_),
        credentials={xid: credentials_of(xid, stored) for xid in endpoint},
        memory=memory * MIB,
        metrics=address_of("--metrics-address", metrics_address),
        interval=seconds_of("--interval", interval),
        http=HttpOptions(
            listen=address_of("--listen", listen),
            max_body=max_body * MIB,
            rate=rate_limit,
            origins=tuple(origin.lower() for origin in allow_origin),
            insecure=insecure,
        ),
    )
    note, show = _printers(progress)
    seconds = seconds_of("--segment-age", segment_age)
    folder = location_of(to)
    if isinstance(folder, Path):
        sink: SegmentFolder | ObjectSegments = SegmentFolder(
            folder, segment_bytes=segment_size * MIB, segment_seconds=seconds
        )
    else:
        sink = ObjectSegments(folder, linger)
    if sink.recovered:
        note(f"recovered {counted(sink.recovered, 'message')} of a gateway that was killed")
    return Gateway(loaded, sink, options, note, show).run()


def _printers(progress: ProgressFormat) -> tuple[Callable[[str], None], Callable[[GatewayStatus], None]]:
    """Return two functions: one prints a note, the other the status of the gateway."""
    if progress is ProgressFormat.JSON:
        return lambda text: print_event({"message": text}), lambda status: print_event(status.to_dict())
    if progress is ProgressFormat.NONE:
        return lambda text: print_note(printable(text)), lambda _: None
    return lambda text: print_note(printable(text)), _print_status


def _print_status(status: GatewayStatus) -> None:
    parts = []
    for endpoint in status.endpoints:
        text = f"{endpoint.xid}: {counted(endpoint.received, 'message')}, {endpoint.acknowledged:,} acknowledged"
        rejected = "".join(f", {count:,} rejected ({reason})" for reason, count in endpoint.rejected.items())
        parts.append(text + rejected + (f"; not receiving: {endpoint.failure}" if endpoint.failure else ""))
    print_note(printable("; ".join(parts)))
