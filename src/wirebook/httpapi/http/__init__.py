"""HTTP mechanics: requests and responses, headers, ETags, paging links, access checks, spooled bodies."""
