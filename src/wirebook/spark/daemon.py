"""The Python daemon of local Spark sessions: PySpark's own daemon with three changes.

Workers are forks of the daemon. This daemon loads the libraries that workers need before it forks. It imports PySpark
from the installed package instead of Spark's archives, because every task would read the file lists of the archives
again (the zip files in a tenth of a second, the jar of Spark's classes in 40 ms). A worker whose session ends, or
whose output is no longer read, exits without a traceback: Spark closes the socket, and PySpark's worker would fail
when it reports the end of its input.
"""

from __future__ import annotations

import socket
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from zipimport import zipimporter

ARCHIVES = (".zip", ".jar")
FOLDERS = [path for path in sys.path if not path.endswith(ARCHIVES)]
if PathFinder.find_spec("pyspark", FOLDERS) and PathFinder.find_spec("py4j", FOLDERS):
    sys.path[:] = FOLDERS
    sys.modules.pop("org", None)  # a folder in the jar: Python's `copy` imports `org` to detect Jython
    for path in [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]:
        del sys.path_importer_cache[path]

from pyspark import daemon  # noqa: E402

LOADED = tuple(map(import_module, ("numpy", "pandas", "pyarrow", "pyspark.sql.pandas.serializers")))

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run PySpark's worker. Return 1 if the connection is closed."""
    try:
        return int(_worker(sock, authenticated))  # type: ignore[no-untyped-call]
    except (BrokenPipeError, ConnectionResetError):
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()  # type: ignore[no-untyped-call]
