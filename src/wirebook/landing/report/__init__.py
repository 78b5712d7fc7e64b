"""The report of a run: statistics and the HTML page."""
