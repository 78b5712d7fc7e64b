"""The landing engine: sources, columns, tables, runs, reports. It uses Arrow and does not import Spark."""
