"""Resolution: aliases followed, base messages merged, endpoints given their definitions."""
