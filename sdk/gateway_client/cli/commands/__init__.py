"""One noun of gatectl, one file: each defines its click commands, and main.py hangs them into the tree."""
