"""`wirebook status`: what the last batches of a target did, and whether a run is writing to it.

Spec: docs/how-to/watch.md#ask-a-target
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wirebook.cli.options import TablesArgument
from wirebook.cli.output import print_json, print_problems, print_table, printable
from wirebook.core.counting import counted
from wirebook.problems import CODES

if TYPE_CHECKING:
    from wirebook.landing.watch.status import TargetStatus


def status(
    folder: TablesArgument,
    last: Annotated[int, typer.Option(help="Number of last batches to sum up.", min=1)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what the last batches of a target did, how far behind its streams are, and which run is writing to it.

    Reads the records of the target and nothing else: it takes no lock, writes nothing, and can be used during a run.

    Exit codes: 0 done, 2 the target cannot be read.
    """
    from wirebook.landing.watch.status import target_status  # noqa: PLC0415 (pyarrow)

    status = target_status(folder, last)
    if as_json:
        print_json(status.to_dict())
        return
    _print_status(status)
    print_problems(status.problems)


def _print_status(status: TargetStatus) -> None:
    """Print the status as text: totals, the run, the last batch, a summary of the last batches, and streams."""
    tables = f" of {status.format} tables" if status.format else ""
    repeated = f" + repeated {status.repeated:,}" if status.repeated else ""
    resolved = f"; resolved: {status.resolved:,}" if status.resolved else ""
    print(printable(f"{status.target}: {counted(status.batches, 'batch', 'batches')}{tables}"))
    print(
        f"read {status.read:,} = landed {status.landed:,} + dead-lettered {status.dead_lettered:,}{repeated}{resolved}"
    )
    print(printable(f"run: {_run(status)}"))
    if status.last is not None:
        print(printable(f"last batch: {_last(status)}"))
    recent = status.recent
    if recent.outcomes:
        print_table(("outcome", "messages"), recent.outcomes.most_common(), title=f"last {_batches(recent.batches)}")
        rows = [
            (code, count, CODES[code].title if code in CODES else "") for code, count in recent.reasons.most_common(10)
        ]
        if rows:
            print_table(("reason", "messages", "meaning"), rows)
    if recent.endpoints:
        print_table(("endpoint", "landed"), recent.endpoints.most_common())
    if recent.late:
        print(f"late: {counted(recent.late, 'event')} landed without a search for repeats")
    if recent.p50_seconds is not None:
        rate = f"{recent.rate:,.0f} messages/s; " if recent.rate is not None else ""
        print(
            f"{rate}batch time p50 {recent.p50_seconds:.1f} s, p95 {recent.p95_seconds:.1f} s; "
            f"{recent.bytes_read:,} bytes read, {recent.bytes_written:,} written"
        )
    for stream in status.streams:
        lag = "unknown" if stream.get("lag") is None else counted(stream["lag"], "message")
        query, endpoint = stream.get("query"), stream.get("endpoint")
        print(printable(f"stream {query} of {endpoint}: batch {stream['batch']} at {stream['started']}, lag: {lag}"))


def _batches(count: int) -> str:
    return "batch" if count == 1 else f"{count:,} batches"


def _run(status: TargetStatus) -> str:
    holder = status.holder
    pending = f"; batch {status.pending} is not finished" if status.pending is not None else ""
    if holder is None or holder.is_running is False:
        return f"none{pending}"
    if holder.is_running is None:
        return f"{holder.owner} was the last to write; this machine cannot tell whether it is still running{pending}"
    return f"{holder.owner} is writing{pending}"


def _last(status: TargetStatus) -> str:
    last, committed = status.last, status.committed
    assert last is not None
    when = f", committed {committed.isoformat(sep=' ', timespec='seconds')}" if committed else ""
    name = f" '{status.name}'" if status.name else ""
    epoch = f", epoch {status.epoch}" if status.epoch is not None else ""
    unread = ""
    if last.run and last.run.unread and last.run.unread[0]:
        unread = f"; {counted(last.run.unread[0], 'file')} still to read"
    return f"{last.batch}{when}, by catalogue {last.catalogue[:8]}{name}{epoch}{unread}"
