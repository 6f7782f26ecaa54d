"""One keeper for each kind of process: it starts the process, watches it and starts its successor."""
