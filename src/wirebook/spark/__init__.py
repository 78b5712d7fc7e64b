"""The main job on Spark: sources, matching, decoding, landing, dead letters."""
