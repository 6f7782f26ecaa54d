"""Commands that write files: keys, a production folder, a new action or provider."""
