"""A demonstration: the catalogue of a fictional company and its synthesised traffic."""
