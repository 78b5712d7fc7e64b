"""Reports about targets: statistics of their batches as an HTML page, and the rows of their tables."""
