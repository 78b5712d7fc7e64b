"""Progress of long runs: on standard error, from the first second, line by line where there is no terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wirebook.cli import progress
from wirebook.cli.progress import ProgressBar


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.05)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.1)


def wait_for(capsys: pytest.CaptureFixture[str], text: str) -> str:
    """Standard error as soon as it has the text; nothing may go to standard output."""
    seen = ""
    deadline = time.monotonic() + 60
    while text not in seen and time.monotonic() < deadline:
        time.sleep(0.01)
        out, err = capsys.readouterr()
        assert out == ""
        seen += err
    return seen


def test_piped_progress_prints_a_line_per_interval(
    quick: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with ProgressBar("loading the catalogue") as bar:
        assert wait_for(capsys, "\n") == "loading the catalogue (0 s)\n"
        bar.begin(200)
        with bar.during(str(tmp_path)):
            (tmp_path / "1").write_text("50 1")
            assert "landing, 25 %, 1 message (" in wait_for(capsys, "25 %")
            (tmp_path / "2").write_text("50 1999")
            assert "landing, 50 %, 2,000 messages (" in wait_for(capsys, "50 %")


def test_first_line_is_printed_within_a_second() -> None:
    assert progress.FIRST_LINE + progress.POLL_SECONDS <= 1


def test_quick_run_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar() as bar:
        bar.begin_step("landing")
    assert capsys.readouterr() == ("", "")
