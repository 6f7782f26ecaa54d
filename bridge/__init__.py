"""The MCP bridge: an MCP server on standard input and output, served as streamable HTTP on loopback."""
