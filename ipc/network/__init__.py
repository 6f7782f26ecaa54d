"""Names and addresses of hosts, and TLS as a client."""
