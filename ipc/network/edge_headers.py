"""Headers that the edge sets for its callers and takes from none of them, and the path that it serves itself."""

from typing import Final

CLIENT_CERT: Final = "client-cert"
"""The client's certificate, which TLS has verified (RFC 9440)."""
CLIENT_DPOP: Final = "client-dpop"
"""The proof that came with a request to MCP_PATH. It is for that request, and the gateway judges it."""
MCP_PATH: Final = "/mcp"
