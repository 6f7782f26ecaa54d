"""The words of an import for the terminal: each manifest on a line, what is left out and why, and the next steps."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from importing.lines import MAX_NAMES, left_out_lines, names_of
from importing.openapi.document import ApiDocument
from importing.openapi.imports import Differences, Imported
from importing.openapi.making import MadeManifest
from importing.words import one_line

_WIDEST_ID, _WIDEST_PATH = 48, 60


def told_import(document: ApiDocument, name: str, result: Imported, out: Path) -> str:
    """Everything that a person has to know after an import."""
    return "\n".join(_import_lines(document, name, result, out)) + "\n"


def told_differences(differences: Differences, out: Path) -> str:
    """A line for each operation that differs, or one sentence if none does."""
    rows = [
        f"  {kind:<8} {one}"
        for kind, ones in (("new", differences.new), ("gone", differences.gone), ("changed", differences.changed))
        for one in ones
    ]
    if not rows:
        return f"{out}: no operation is new, gone or changed.\n"
    counts = f"{len(differences.new)} new, {len(differences.gone)} gone, {len(differences.changed)} changed"
    return "\n".join([f"{out}: {counts}", *rows]) + "\n"


def _import_lines(document: ApiDocument, name: str, result: Imported, out: Path) -> Iterator[str]:
    hosts = sorted({one.host for one in result.made})
    count = len(document.operations)
    parts = [f"{name}: {count} operation{'s' * (count != 1)}", f"OpenAPI {document.version}", *hosts]
    yield " · ".join(parts)
    yield from _rows(result.made)
    unread = [(one_line(path, 80), reason) for path, reason in document.unread_paths]
    yield from left_out_lines(result.left_out + unread)
    if document.counted_callbacks:
        number = document.counted_callbacks
        yield f"left out: {number} callback{'s' * (number != 1)}, which the API calls itself"
    reviewed = [one.action_id for one in result.made if one.notes]
    if reviewed:
        yield f"to review: {names_of(reviewed)}; `# Review:` in each file says why"
    if result.kept:
        yield f"kept as they are: {names_of(one.path.name for one in result.kept)}; --force writes over them"
    if result.made:
        yield from _next(result.made, out)
    else:
        yield "No manifest was written."


def _rows(made: list[MadeManifest]) -> Iterator[str]:
    wide = min(max((len(one.action_id) for one in made), default=0), _WIDEST_ID)
    long = min(max((len(one.sent) for one in made), default=0), _WIDEST_PATH)
    for one in made:
        secrets = ", ".join(f"{secret.name} ({secret.shown})" for secret in one.secrets)
        sent = one.sent if len(one.sent) <= long else one.sent[: long - 1] + "…"
        row = f"  {one.action_id:<{wide}}  {one.operation.method:<6} {sent:<{long}}  {one.risk:<6}"
        yield f"{row}  {f'secret {secrets}' if secrets else ''}".rstrip()


def _next(made: list[MadeManifest], out: Path) -> Iterator[str]:
    count = len(made)
    secrets = sorted({secret.name for one in made for secret in one.secrets})
    yield f"{count} manifest{'s' * (count != 1)} in {shlex.quote(str(out))}/. Nothing is in force yet. Next:"
    yield "  read each file: what it sends, to whom, and its risk"
    if secrets:
        yield f"  put into the secrets file: {', '.join(secrets)}"
    else:
        yield "  add `secrets` to each file if the API asks for a key: the document names none"
    yield "  gateway check --config gateway.toml --connect"
    yield f"  gatectl policy grant PRINCIPAL {' '.join(one.action_id for one in made[:MAX_NAMES])}" + (
        " …" if count > MAX_NAMES else ""
    )
