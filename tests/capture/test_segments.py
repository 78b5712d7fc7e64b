"""Segments: durable lines, complete files only, recovery after a crash, and writes that fail."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from wirebook.capture.segments import SegmentFolder
from wirebook.landing.sources.files import list_files
from wirebook.problems import WirebookError


def segments_in(folder: Path) -> list[bytes]:
    """The content of all segments that a landing run sees."""
    return [Path(os.fsdecode(file.path)).read_bytes() for file in list_files(folder).files]


def open_folder(folder: Path, *, size: int = 1 << 20, seconds: float = 60) -> SegmentFolder:
    return SegmentFolder(folder, segment_bytes=size, segment_seconds=seconds)


def kill(sink: SegmentFolder) -> None:
    """What remains of a gateway after SIGKILL: its locks are gone, its files are as they were."""
    os.close(sink._lock)


def test_segment_under_way_is_invisible_to_landing(tmp_path: Path) -> None:
    sink = open_folder(tmp_path)
    sink.write([b'{"a":1}', b'{"a":2}'])
    assert segments_in(tmp_path) == []
    sink.write([b'{"a":3}'])
    sink.close()
    assert segments_in(tmp_path) == [b'{"a":1}\n{"a":2}\n{"a":3}\n']


def test_segment_is_complete_at_its_size(tmp_path: Path) -> None:
    sink = open_folder(tmp_path, size=10)
    for line in (b'{"a":1}', b'{"a":2}', b'{"a":3}'):
        sink.write([line])
    assert segments_in(tmp_path) == [b'{"a":1}\n{"a":2}\n']
    sink.close()
    assert segments_in(tmp_path) == [b'{"a":1}\n{"a":2}\n', b'{"a":3}\n']


def test_segment_is_complete_at_its_age(tmp_path: Path) -> None:
    sink = open_folder(tmp_path, seconds=0)
    sink.write([b'{"a":1}'])
    sink.roll()
    assert segments_in(tmp_path) == [b'{"a":1}\n']
    sink.close()
    assert segments_in(tmp_path) == [b'{"a":1}\n']


@pytest.mark.parametrize("rest", [b"", b'{"a":', b"\0" * 50, b"\0\0\0{}\n\0\0", b'{"a":4\0\0\0\n{"a":5}\n'])
def test_partial_segment_is_recovered_up_to_its_last_complete_line(tmp_path: Path, rest: bytes) -> None:
    sink = open_folder(tmp_path)
    sink.write([b'{"a":1}', b'{"a":2}'])
    (partial,) = tmp_path.glob(".*.partial")
    with partial.open("ab") as file:
        file.write(rest)
    kill(sink)
    after = open_folder(tmp_path)
    assert after.recovered == 2
    assert segments_in(tmp_path) == [b'{"a":1}\n{"a":2}\n']
    assert not list(tmp_path.glob(".*.partial"))
    after.close()


def test_partial_segment_without_a_line_is_deleted(tmp_path: Path) -> None:
    (tmp_path / ".a.jsonl.partial").write_bytes(b'{"a":')
    (tmp_path / ".b.jsonl.partial").write_bytes(b"")
    sink = open_folder(tmp_path)
    assert (sink.recovered, segments_in(tmp_path), list(tmp_path.glob(".*.partial"))) == (0, [], [])
    sink.close()


def test_second_gateway_is_rejected_while_the_first_runs(tmp_path: Path) -> None:
    sink = open_folder(tmp_path)
    with pytest.raises(WirebookError) as error:
        open_folder(tmp_path)
    assert [problem.code for problem in error.value.problems] == ["target-locked"]
    sink.close()
    again = open_folder(tmp_path)
    assert again.identity == sink.identity
    again.close()


def test_failed_write_leaves_durable_lines_only(tmp_path: Path) -> None:
    """A real failure: the limit on the size of files lets the write succeed in part."""
    sink = open_folder(tmp_path)
    sink.write([b'{"a":1}'])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(OSError) as error:  # noqa: PT011 (the number is compared)
            sink.write([b'{"a":2}', b'{"a":3}'])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.errno == errno.EFBIG
    (partial,) = tmp_path.glob(".*.partial")
    assert partial.stat().st_size == 20  # part of the lines that were not acknowledged
    sink.write([b'{"a":2}', b'{"a":3}'])
    sink.close()
    assert segments_in(tmp_path) == [b'{"a":1}\n', b'{"a":2}\n{"a":3}\n']


def test_failed_sync_begins_another_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed fsync the kernel may have dropped the data, so a second fsync of the file proves nothing."""
    sink = open_folder(tmp_path)
    sink.write([b'{"a":1}'])

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            sink.write([b'{"a":2}'])
    sink.write([b'{"a":2}'])
    sink.close()
    assert segments_in(tmp_path) == [b'{"a":1}\n', b'{"a":2}\n']


def test_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WirebookError) as error:
        open_folder(tmp_path / "file" / "segments")
    assert [problem.code for problem in error.value.problems] == ["unwritable-target"]
