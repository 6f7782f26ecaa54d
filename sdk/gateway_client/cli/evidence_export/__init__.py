"""Audit events as a file for people who analyse them: JSON lines, CSV or Parquet, continued where it was cut."""
