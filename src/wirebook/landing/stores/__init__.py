"""Stores of sources and targets: local folders, object stores and HDFS."""
