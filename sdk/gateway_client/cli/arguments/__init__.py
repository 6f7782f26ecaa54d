"""What a command line names: files, keys, requests, and parts of ids."""
