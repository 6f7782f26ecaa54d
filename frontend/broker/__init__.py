"""Asking the broker: tokens of upstreams."""
