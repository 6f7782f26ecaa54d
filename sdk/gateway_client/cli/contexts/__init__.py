"""Which gateway a command speaks to, and with which keys."""
