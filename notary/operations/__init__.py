"""What fronts ask for: one file a matter, one function an operation (their words: ipc/messages/notary_frames.py)."""
