"""`POST /mcp` of the edge: MCP over HTTP, for agents with an access token."""
