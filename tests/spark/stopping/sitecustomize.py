"""Stop the Spark session of a program when the program ends. Python imports this module at its start."""

import atexit
import sys


@atexit.register
def stop_spark() -> None:
    if "pyspark" in sys.modules and (context := sys.modules["pyspark"].SparkContext._active_spark_context):
        context.stop()
