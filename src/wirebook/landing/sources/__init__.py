"""Sources: finds the records of files and DataFrames, and yields them as chunks."""
