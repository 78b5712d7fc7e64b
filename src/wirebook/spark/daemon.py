"""The Python daemon of local Spark sessions: PySpark's own with three changes.

Workers are forks of the daemon. This one loads the libraries that workers need before it forks. It imports PySpark from
the installed package, not from Spark's zip files, whose lists of modules every task would read again in a tenth of a
second. A worker whose session ends, or whose output is no longer read, ends without a traceback (Spark closes the
socket, and PySpark's worker then fails to report the end of its input).
"""

from __future__ import annotations

import socket
import sys
from importlib import import_module
from importlib.machinery import PathFinder

FOLDERS = [path for path in sys.path if not path.endswith(".zip")]
if PathFinder.find_spec("pyspark", FOLDERS) and PathFinder.find_spec("py4j", FOLDERS):
    sys.path[:] = FOLDERS
    for path in [path for path in sys.path_importer_cache if ".zip" in path]:
        del sys.path_importer_cache[path]

from pyspark import daemon  # noqa: E402

LOADED = tuple(map(import_module, ("numpy", "pandas", "pyarrow", "pyspark.sql.pandas.serializers")))

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """PySpark's worker; returns 1 if the connection is closed."""
    try:
        return int(_worker(sock, authenticated))  # type: ignore[no-untyped-call]
    except (BrokenPipeError, ConnectionResetError):
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()  # type: ignore[no-untyped-call]
