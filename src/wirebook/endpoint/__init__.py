"""Endpoints: their options, and the definitions that messages at them may match."""
