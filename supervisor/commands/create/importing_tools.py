"""`gateway import mcp`: a manifest for each tool of an MCP server, made by a program of its own (importing/mcp/)."""

import argparse
import os
import sys

import msgspec

from supervisor.commands import Commands
from supervisor.programs import INTERPRETER

_FIELDS = ("url", "out", "command", "token_file", "prefix", "risk", "force")


def add_mcp(kinds: Commands) -> None:
    """Put `mcp` beside the other kinds of descriptions."""
    mcp = kinds.add_parser(
        "mcp",
        help="from the tools that an MCP server lists",
        description="Write a manifest for each tool of an MCP server, to be reviewed. Name, description and schema of "
        "the tool are pinned. A file that is there is kept. Nothing is put in force (docs/mcp-servers.md).",
    )
    mcp.add_argument("--url", required=True, metavar="URL", help="where the gateway will reach the server")
    mcp.add_argument(
        "--command",
        metavar="COMMAND",
        help="list the tools of this program instead; gateway mcp-bridge serves it",
    )
    mcp.add_argument("--out", required=True, metavar="DIR", help="folder of the manifests; made if it is not there")
    mcp.add_argument(
        "--risk", choices=("low", "medium", "high", "critical"), default="medium",
        help="risk level of every action (default %(default)s)",
    )  # fmt: skip
    mcp.add_argument("--prefix", default="", metavar="P", help="beginning of each id and of the secret's name")
    mcp.add_argument(
        "--token-file",
        metavar="FILE",
        help="private file with a bearer token that the server wants",
    )
    mcp.add_argument("--force", action="store_true", help="write over files that are there")
    mcp.set_defaults(run=_mcp)


def _mcp(options: argparse.Namespace) -> int:
    sys.stdout.flush()
    given = {name: getattr(options, name) for name in _FIELDS}
    # Manifests are YAML, which this process never reads.
    os.execv(  # noqa: S606 - our own interpreter and module
        sys.executable, [*INTERPRETER, "importing.mcp.main", msgspec.json.encode(given).decode()]
    )
