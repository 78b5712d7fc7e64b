"""Compilation: slots, templates, typed values; the one form that every engine reads."""
