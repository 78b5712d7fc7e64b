"""Small file systems that tests fill."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

PAGE = 4096


@contextmanager
def mounted_disk(size: str) -> Iterator[Path]:
    """The folder of a file system of some size, which other users may enter: not in pytest's own, which they may not.
    Skips the test if file systems may not be mounted."""
    folder = Path(mkdtemp(prefix="wirebook-disk-"))
    folder.chmod(0o755)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
    folder.rmdir()


def fill(folder: Path, pages: int = 0) -> Path:
    """A file that takes all the space that is left, except some pages of 4 KiB."""
    file = folder / "ballast"
    with file.open("wb", buffering=0) as ballast:
        try:
            while ballast.write(b"\0" * PAGE):
                pass
        except OSError:
            ballast.truncate(max(0, ballast.tell() - pages * PAGE))
    return file
