"""Every starter of `gateway new action --from`: accepted by `gateway check`, and its tests pass."""

import subprocess
from pathlib import Path

import pytest

from tests.support.gateway import PROGRAM, START_SECONDS

STARTERS = Path(__file__).parents[2] / "contrib" / "templates" / "starters"
NAMES = sorted(path.name for path in STARTERS.iterdir())


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PROGRAM, *words], check=False, capture_output=True, text=True, timeout=START_SECONDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an action of each starter, named like it."""
    made: Path = tmp_path_factory.mktemp("starters")
    for name in NAMES:
        done = command("new", "action", name, "--from", name, "--dir", str(made))
        assert done.returncode == 0, done.stderr
    return made


def test_the_list_names_each_starter_with_what_it_does() -> None:
    listed = command("new", "action", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == NAMES
    assert all(line.endswith(".") for line in listed)


def test_check_accepts_every_starter_as_it_is(folder: Path) -> None:
    done = command("check", "--dev", "--config", str(folder / "gateway.toml"))
    assert done.returncode == 0, done.stderr
    assert f"no problems, {len(NAMES)} actions" in done.stdout


def test_the_tests_of_every_starter_pass(folder: Path) -> None:
    done = command("test", "actions", str(folder / "actions"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{name}: " in done.stdout for name in NAMES)


def test_a_starter_is_written_over_no_file(folder: Path) -> None:
    manifest = folder / "actions" / f"{NAMES[0]}.yaml"
    before = manifest.read_bytes()
    refused = command("new", "action", NAMES[0], "--from", NAMES[1], "--dir", str(folder))
    assert (refused.returncode, manifest.read_bytes()) == (78, before)
    unknown = command("new", "action", "other", "--from", "none", "--dir", str(folder))
    assert (unknown.returncode, (folder / "actions" / "other.yaml").exists()) == (2, False)
