"""The demonstration (`wirebook demo`): the catalogue of a fictional company, and its generated traffic."""
