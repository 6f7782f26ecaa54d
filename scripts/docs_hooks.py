"""Pages of the site from outside of `docs/`, and links where a text names a page.

In the repository a page is named by its path, in backticks, as it is read there; on the site the same name is a link.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "sdk/README.md")
"""Pages of the repository that are part of the site, at the same path."""
_NAMED = re.compile(r"(?<!\[)`(docs/)?([\w./-]+\.(?:md|json))`(?!\]\()")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie elsewhere."""
    for name in ELSEWHERE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Make a link of every page that the text names; code blocks stay as they are.

    Images of pages at the root of the repository lie in `docs/`, which is the root of the site.
    """
    folder = posixpath.dirname(page.file.src_uri)
    markdown = markdown.replace("](docs/images/", "](images/")
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith("```") else _NAMED.sub(lambda m: _link(m, folder, files), part) for part in parts
    )


def _link(match: re.Match[str], folder: str, files: Files) -> str:
    name = match[2]
    if (match[1] is None and name not in ELSEWHERE) or files.get_file_from_path(name) is None:
        return match[0]
    return f"[{match[0]}]({posixpath.relpath(name, folder or '.')})"
