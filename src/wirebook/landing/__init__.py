"""The landing engine: sources, columns, tables, runs, reports. Arrow only; it does not import Spark."""
