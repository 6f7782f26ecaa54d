"""The page: every file of `console/page/`, read once, so that no request ever names a path on the disk."""

from pathlib import Path
from typing import Final

from frontend.http.answers import Answer

_FOLDER: Final = Path(__file__).parent / "page"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
}  # fmt: skip
START: Final = "index.html"


def load_page(folder: Path = _FOLDER) -> dict[str, Answer]:
    """Path in a URL -> answer. Raises OSError, and KeyError for a file of an unknown kind."""
    answers = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            name = file.relative_to(folder).as_posix()
            answers["/" if name == START else f"/{name}"] = Answer(
                200, file.read_bytes(), content_type=_TYPES[file.suffix]
            )
    return answers
