"""The end of a gateway."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wirebook.capture.committer import Committer
from wirebook.capture.segments import SegmentFolder
from wirebook.capture.service import Gateway, GatewayOptions
from wirebook.catalog import Catalog
from wirebook.landing.stores.locations import location_of
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.stores.segments import ObjectSegments


class FailingReceiver:
    """Fails while the line that it has received is being written."""

    def __init__(self, committer: Committer, writing: threading.Event, failed: threading.Event) -> None:
        self._committer, self._writing, self._failed = committer, writing, failed

    async def run(self, _: asyncio.Event) -> None:
        self._committer.append(b'{"protocol":"HTTP"}')
        await asyncio.to_thread(self._writing.wait)
        threading.Timer(0.2, self._failed.set).start()
        raise RuntimeError("the receiver failed")


def run_failing(sink: Any) -> None:
    """Run a gateway whose receiver fails during a write."""
    writing, failed = threading.Event(), threading.Event()
    write = sink.write

    def write_slowly(lines: Sequence[bytes]) -> None:
        writing.set()
        failed.wait()
        write(lines)

    class FailingGateway(Gateway):
        def _receivers(self, committer: Committer) -> list[Any]:
            return [FailingReceiver(committer, writing, failed)]

    sink.write = write_slowly
    gateway = FailingGateway(
        Catalog.load({"specversion": "1.0-rc4"}), sink, GatewayOptions(endpoints=[]), lambda _: None, lambda _: None
    )
    with pytest.raises(RuntimeError, match="the receiver failed"):
        gateway.run()


def test_next_gateway_starts_after_a_receiver_failed_during_a_write(bucket: str) -> None:
    folder = location_of(f"{bucket}/captured")
    assert isinstance(folder, ObjectPath)
    run_failing(ObjectSegments(folder, 0.0))
    following = ObjectSegments(folder, 0.0)  # else the lease would expire after a minute
    following.close()
    assert [path.name for path, _ in folder.below() if path.name.endswith(".jsonl")] != []


def test_folder_is_unlocked_after_a_receiver_failed_during_a_write(tmp_path: Path) -> None:
    run_failing(SegmentFolder(tmp_path, segment_bytes=1 << 20, segment_seconds=60.0))
    following = SegmentFolder(tmp_path, segment_bytes=1 << 20, segment_seconds=60.0)
    assert following.recovered == 0
    following.close()
    [segment] = tmp_path.glob("*.jsonl")
    assert segment.read_bytes() == b'{"protocol":"HTTP"}\n'
