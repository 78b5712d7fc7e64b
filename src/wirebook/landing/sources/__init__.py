"""Sources: files, their types, splits and lines, as batches of records."""
