"""An MCP server over the client library: actions as tools, holds as structured content and tasks. For `gatectl mcp`.

Needs the extra `mcp` of this distribution; nothing else of the library imports it.
"""
