"""`gateway import openapi`: manifests from a published description, made by a program of its own (importing/)."""

import argparse
import os
import sys

import msgspec

from supervisor.commands import Commands
from supervisor.commands.create.importing_tools import add_mcp
from supervisor.programs import INTERPRETER

_FIELDS = ("document", "out", "operations", "server", "prefix", "force", "check")


def add(commands: Commands) -> None:
    """Put `import` beside the other commands."""
    group = commands.add_parser("import", help="make manifests from the description of an API")
    kinds = group.add_subparsers(title="descriptions", required=True, metavar="KIND")
    openapi = kinds.add_parser(
        "openapi",
        help="from an OpenAPI document, a manifest for each operation",
        description="Write a manifest for each operation of an OpenAPI 3.0 or 3.1 document, to be reviewed. A file "
        "that is there is kept. Nothing is put in force. What is left out is printed with its reason (docs/import.md).",
    )
    openapi.add_argument("document", metavar="FILE|URL", help="document in JSON or YAML; a URL is https://")
    openapi.add_argument("--out", required=True, metavar="DIR", help="folder of the manifests; made if it is not there")
    openapi.add_argument(
        "--operation", dest="operations", action="append", default=[], metavar="ID",
        help="an operationId, or 'METHOD /path', to import; repeat for more (default: all)",
    )  # fmt: skip
    openapi.add_argument("--server", metavar="URL", help="address to send to, instead of the document's servers")
    openapi.add_argument("--prefix", default="", metavar="P", help="beginning of each id and of the secrets' names")
    mode = openapi.add_mutually_exclusive_group()
    mode.add_argument("--force", action="store_true", help="write over files that are there")
    mode.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if an operation is new, gone or changed"
    )
    openapi.set_defaults(run=_openapi)
    add_mcp(kinds)


def _openapi(options: argparse.Namespace) -> int:
    sys.stdout.flush()
    given = {name: getattr(options, name) for name in _FIELDS}
    # Manifests are YAML, which this process never reads.
    os.execv(  # noqa: S606 - our own interpreter and module
        sys.executable, [*INTERPRETER, "importing.openapi.main", msgspec.json.encode(given).decode()]
    )
