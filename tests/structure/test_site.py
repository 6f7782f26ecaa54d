"""The documents as a site: every page has its place, every link leads somewhere, nothing comes from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(r"""<(?:script|img|iframe)[^>]*\bsrc=["']?(https?:)|<link[^>]*rel=["']?stylesheet[^>]*(https?:)""")


def build(root: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)], cwd=root, text=True,
        capture_output=True, check=False, timeout=300, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    # Strict: a page without a place, or a link to what is not there, is an error.
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_a_page_that_the_text_names_is_a_link_on_the_site(site: Path) -> None:
    page = (site / "people" / "operator.html").read_text()
    assert 'href="../operations.html"' in page
    assert 'href="../runbooks/index.html"' in page


def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    fetching = [page.name for page in site.rglob("*.html") if FETCHED.search(page.read_text())]
    assert not fetching


def test_every_error_code_is_found_by_the_search_of_the_site(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text()
    codes = re.findall(r"^\| \d+ \| `(\w+)` \|", (ROOT / "docs" / "errors.md").read_text(), re.M)
    assert len(codes) > 20
    assert not [code for code in codes if code not in index]


def test_a_link_to_a_page_that_is_not_there_fails(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "errors.md").write_text("# Errors\n\n[gone](gone.md)\n")
    settings = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0].replace("hooks:", "extra:\n  unused:")
    (tmp_path / "mkdocs.yml").write_text(f"{settings}\nnav: [errors.md]\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    assert "gone.md" in built.stdout + built.stderr
