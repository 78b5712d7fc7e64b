"""Layer `message`: what a definition means, as template and as filter."""
