"""What fronts ask for: one file a matter, one function an operation (ipc/messages/recording.py, looking.py)."""
