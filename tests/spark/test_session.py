"""The local session: quiet, in UTC, on this Python, and the same one when asked again. Its workers import nothing from
archives, which each task would read again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import pyarrow as pa
from wirebook.spark.session import session

def batches(stream):
    import sys, zipimport
    archives = [item for item in sys.path_importer_cache.values() if isinstance(item, zipimport.zipimporter)]
    for batch in stream:
        yield pa.RecordBatch.from_pydict(
            {"python": [sys.executable], "rows": [batch.num_rows], "archives": [len(archives)]}
        )

before = dict(os.environ)
spark = session("test", cores=1)
assert session() is spark
changed = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
assert not {"JAVA_HOME", "WIREBOOK_JAVA", "SPARK_HOME", "PYSPARK_PYTHON"} & changed, changed
(row,) = spark.range(7).coalesce(1).mapInArrow(batches, "python string, rows long, archives long").collect()
print(spark.range(100_000).mapInArrow(lambda stream: stream, "id long").limit(1).count())  # ends its worker early
print(row.python, row.rows, row.archives, spark.conf.get("spark.sql.session.timeZone"), spark.sparkContext.master)
"""


@pytest.mark.spark
def test_local_session_is_quiet_and_runs_this_python() -> None:
    environment = os.environ | {"SPARK_HOME": "/elsewhere", "PYSPARK_PYTHON": "/elsewhere/python"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == f"1\n{sys.executable} 7 0 UTC local[1]\n"
