"""`gateway keys rotate` and `gateway keys list`: what they say, and what they refuse in one sentence."""

import os
import re
import shutil
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.cli import main
from supervisor.dev.keys import make_keys
from tests.supervisor.test_cli import here
from tests.support.key_files import PURPOSES, keys_command


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys that a dev gateway makes at its first start."""
    folder: Path = tmp_path_factory.mktemp("made")
    make_keys(folder)
    return folder


@pytest.fixture
def state(made: Path, tmp_path: Path) -> Path:
    """The state directory of a dev gateway that has never been started."""
    return Path(shutil.copytree(made, tmp_path / "state"))


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_rotation_says_which_key_came_which_one_went_and_what_becomes_of_its_signatures(
    state: Path, purpose: str
) -> None:
    before = (state / "keys" / f"{purpose}.pem").read_bytes()
    done = keys_command("rotate", "--purpose", purpose, "--state-dir", state)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third = done.stdout.splitlines()
    assert re.fullmatch(rf"{purpose}: the next key is [\w-]{{43}}, in {state}/keys/{purpose}\.pem\.", first)
    assert re.match(r"The key before, [\w-]{43}, is destroyed; ", second)
    stays = {
        "lease": "accepted until",
        "grant": "calls",
        "receipt": "verify as before",
        "checkpoint": "verify as before",
    }
    assert stays[purpose] in second
    assert "without a restart" in third
    assert (state / "keys" / f"{purpose}.pem").read_bytes() != before


def test_the_list_of_a_gateway_that_was_never_started_has_all_its_keys(state: Path) -> None:
    before = sorted(path.name for path in state.rglob("*"))
    done = here(state, "keys", "list", "--state-dir", str(state))
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[:2] for row in rows] == [
        [purpose, "current"] for purpose in ("lease", "grant", "receipt", "checkpoint")
    ]
    assert sorted(path.name for path in state.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rotate", "--purpose", "lease"], "name the gateway: --config FILE, or --state-dir DIR"),
        (["list"], "name the gateway"),
        (["rotate", "--state-dir", "s"], "--purpose"),
        (["rotate", "--purpose", "operator", "--state-dir", "s"], "invalid choice"),
        (["rotate", "--purpose", "receipt", "--forget-previous", "--state-dir", "s"], "for leases alone"),
        (["rotate", "--purpose", "grant", "--forget-previous", "--state-dir", "s"], "for leases alone"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(["keys", *arguments])
    except SystemExit as left:
        code = left.code
    assert code == Exit.USAGE
    assert words in capsys.readouterr().err


def test_problems_of_a_configuration_are_all_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "g.toml").write_text('lease_ttl_seconds = 0\ncolour = "red"\n')
    for command in (["list"], ["rotate", "--purpose", "grant"]):
        assert main(["keys", *command, "--config", str(tmp_path / "g.toml")]) == Exit.CONFIG
        told = capsys.readouterr().err
        assert "lease_ttl_seconds" in told
        assert "colour" in told


def _gone(key: Path) -> None:
    key.unlink()


def _open(key: Path) -> None:
    key.chmod(0o604)


def _theirs(key: Path) -> None:
    os.chown(key, 65534, 65534)


@pytest.mark.parametrize(
    ("spoil", "code", "sentence"),
    [
        (_gone, Exit.NO_PERMISSION, f"cannot read it: {os.strerror(2)}. gateway keys make makes the first ones."),
        (_open, Exit.CONFIG, "mode 0604 lets others in. Use chmod 0600."),
        pytest.param(
            _theirs, Exit.NO_PERMISSION, "belongs to user id 65534. Run this as that user, as the gateway does.",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away"),
        ),
    ],
)  # fmt: skip
def test_a_key_that_will_not_do_is_one_sentence_with_its_mend(
    state: Path, spoil: object, code: Exit, sentence: str
) -> None:
    key = state / "keys" / "lease.pem"
    assert callable(spoil)
    spoil(key)
    done = here(state, "keys", "rotate", "--purpose", "lease", "--state-dir", str(state))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"gateway: {key}: {sentence}\n"
