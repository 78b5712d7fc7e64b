"""Writes: what a request changes in Groups, Resources, Versions and their meta, and the checks at its end."""
