"""The front's end of its channel to the exporter."""
