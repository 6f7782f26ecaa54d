"""The program of `gateway import openapi`: `python -m importing.openapi.main OPTIONS`, OPTIONS as JSON.

Prints the result on standard output, or a refusal as one sentence on standard error; returns an exit code.
"""

import sys
from pathlib import Path

import msgspec

from importing.folder import ImportFolder
from importing.openapi.document import ApiDocument
from importing.openapi.fetching import fetch
from importing.openapi.imports import chosen, compared, imported
from importing.openapi.making import ImportTarget
from importing.openapi.reading import value_of
from importing.openapi.servers import checked
from importing.openapi.telling import told_differences, told_import
from importing.refusal import ImportRefused, LeftOut, ended
from ipc.process.exits import Exit


class OpenApiImport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the command (supervisor/commands/create/importing.py)."""

    document: str
    out: str
    operations: tuple[str, ...] = ()
    server: str | None = None
    prefix: str = ""
    force: bool = False
    check: bool = False


def run(options: OpenApiImport) -> int:
    """Import or compare. Raises ImportRefused."""
    name = options.document
    document = ApiDocument(value_of(fetch(name), name), name)
    folder = ImportFolder(Path(options.out))
    target = ImportTarget(name, _server(options.server), options.prefix)
    operations = chosen(document, list(options.operations))
    if options.check:
        differences = compared(operations, document, folder, target)
        sys.stdout.write(told_differences(differences, Path(options.out)))
        has_some = differences.new or differences.gone or differences.changed
        return Exit.FAILED if has_some else Exit.OK
    result = imported(operations, document, folder, target, over=options.force)
    if not options.force:
        folder.check_free(one.action_id for one in result.made)
    for one in result.made:
        folder.write(one.action_id, one.text, over=options.force)
    sys.stdout.write(told_import(document, name, result, Path(options.out)))
    return Exit.OK if result.made or result.kept else Exit.FAILED


def _server(given: str | None) -> str | None:
    try:
        return None if given is None else checked(given)
    except LeftOut as reason:
        raise ImportRefused(f"{reason}.", Exit.USAGE) from None


if __name__ == "__main__":
    sys.exit(ended(run, OpenApiImport))
