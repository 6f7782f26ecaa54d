"""The program of `gateway import mcp`: `python -m importing.mcp.main OPTIONS`, OPTIONS as JSON.

Prints the result on standard output, or one sentence on standard error; returns an exit code.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec

from importing.folder import ImportFolder
from importing.mcp.imports import imported_tools
from importing.mcp.making import target_of
from importing.mcp.telling import told_tools
from importing.refusal import ImportRefused, ended
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, read_private

MISSING = "gateway import mcp needs the package mcp: pip install '.[mcp]' in a clone of the repository."


class McpImport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the command (supervisor/commands/create/importing_tools.py)."""

    url: str
    out: str
    command: str | None = None
    token_file: str | None = None
    prefix: str = ""
    risk: str = "medium"
    force: bool = False


def run(options: McpImport) -> int:
    """Import. Raises ImportRefused."""
    token = None if options.token_file is None else _token(Path(options.token_file))
    if token is not None and options.command is None and not options.url.startswith("https://"):
        raise ImportRefused(f"--url {options.url!a}: a token is never sent without TLS.", Exit.USAGE)
    target = target_of(options.url, options.prefix, options.risk, has_token=token is not None)
    folder = ImportFolder(Path(options.out))
    if find_spec("mcp") is None:
        raise ImportRefused(MISSING, Exit.UNAVAILABLE)
    from importing.mcp.listing import list_tools

    server = list_tools(options.url, options.command, token)
    result = imported_tools(server, folder, target, over=options.force)
    for one in result.made:
        folder.write(one.action_id, one.text, over=options.force)
    sys.stdout.write(told_tools(server, result, target, Path(options.out)))
    return Exit.OK if result.made or result.kept else Exit.FAILED


def _token(file: Path) -> str:
    try:
        token = read_private(file).decode().strip()
    except (PrivateFileError, OSError, UnicodeDecodeError) as error:
        raise ImportRefused(f"--token-file {file}: {error}.", Exit.NO_PERMISSION) from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ImportRefused(f"--token-file {file} holds no token.", Exit.CONFIG)
    return token


if __name__ == "__main__":
    sys.exit(ended(run, McpImport))
