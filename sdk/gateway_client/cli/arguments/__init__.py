"""Files, keys, requests and parts of ids, as a command line names them."""
