"""Read requests: flags, filters, sort order, `inline`, and rendering entities as JSON."""
