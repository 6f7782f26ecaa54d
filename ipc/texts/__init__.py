"""Texts with one spelling each: JSON, paths, encodings, text that a person is shown."""
