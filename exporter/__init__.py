"""The exporter: sends spans of calls to a collector, by OTLP over HTTP."""
