"""Channels between processes: frames, packets, descriptors, and which message may come when."""
