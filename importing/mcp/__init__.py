"""`gateway import mcp`: a manifest for each tool of an MCP server."""
