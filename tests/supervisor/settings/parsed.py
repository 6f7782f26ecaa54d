"""A configuration as text, read and checked as that of `g.toml` in a folder."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from supervisor.settings.config import Loaded, check
from supervisor.settings.document import parse_document
from supervisor.settings.kind import PathContext

NEEDED = 'state_dir = "/var/lib/gateway"\npublic_base_url = "https://gate.example"\n'
"""The settings without a default."""
FOLDER = Path("/etc/gateway")


def checked(text: str | bytes, folder: Path = FOLDER, environ: Mapping[str, str] | None = None) -> Loaded:
    """Settings or problems."""
    document, problems = parse_document("g.toml", text.encode() if isinstance(text, str) else text)
    return check(document, PathContext(folder, environ or {}), problems)


def with_rows(name: str, rows: Iterable[str], head: str = "") -> str:
    """The settings without a default, `head`, and this array of tables."""
    return NEEDED + head + "".join(f"[[{name}]]\n{row}\n" for row in rows)
