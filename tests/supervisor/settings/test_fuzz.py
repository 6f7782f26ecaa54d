"""Configurations out of spoilt files: always settings or problems with places, and never anything else."""

import re
from pathlib import Path

import pytest
from hypothesis import given

from supervisor.settings.config import check
from supervisor.settings.document import parse_document
from supervisor.settings.kind import PathContext
from supervisor.settings.loading import load_for_production
from supervisor.settings.problems import as_json, in_order
from tests.supervisor.test_cli import PRODUCTION
from tests.support.mutations import spoilt

SHOWN = re.findall(
    r"```toml\n(state_dir.*?)```",
    (Path(__file__).resolve().parents[3] / "docs" / "configuration.md").read_text(),
    re.DOTALL,
)
FILES = [PRODUCTION.encode(), *(text.encode() for text in SHOWN)]
WORDS = [
    "=", "[", "]", "[[", "]]", "{", "}", ".", '"', "'", '"""', "'''", "\\", "\\u0000", "#", "\n", "\r", "\x00",
    "nan", "inf", "0x1", "1_0", "1979-05-27T07:32:00Z", "operators", "[identity]", "[limits]\n",
    "[workers.http]\nmax = 0\n", "listen_uds_path = ", "identity.peercred.principals.1",
]  # fmt: skip


@given(spoilt(FILES, WORDS))
def test_a_spoilt_configuration_is_settings_or_problems_with_places(data: bytes) -> None:
    document, problems = parse_document("g.toml", data)
    loaded = check(document, PathContext(Path("/etc/gateway"), {}), problems)
    assert (loaded.settings is None) is bool(loaded.problems)
    assert (loaded.judged is None) is document.is_broken
    assert loaded.settings in (None, loaded.judged)
    for problem in in_order(loaded.problems):
        assert problem.origin == "g.toml"
        assert 0 <= problem.line <= len(data.splitlines()) + 2
        assert str(problem).isprintable()
    as_json(loaded.problems)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("configurations")
    return path


@given(data=spoilt(FILES, WORDS))
def test_the_rules_of_production_can_be_held_against_any_of_them(folder: Path, data: bytes) -> None:
    (folder / "g.toml").write_bytes(data)
    loaded = load_for_production(folder / "g.toml", {})
    assert (loaded.settings is None) is bool(loaded.problems)
