"""`gateway init --production`: a folder that `gateway check` accepts as it is, and a gateway that serves from it."""

import hashlib
import json
import re
import stat
import tomllib
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.supervisor.commands.create.test_provision import run
from tests.supervisor.test_cli import here


def init(folder: Path, *more: str) -> tuple[str, Path]:
    """The output of the command, and the path of the configuration."""
    places = ("--state-dir", str(folder / "state"), "--run-dir", str(folder / "run"))
    done = run("init", "--production", str(folder / "etc"), *places, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "etc" / "gateway.toml"


def test_check_accepts_the_written_file_which_only_its_owner_can_read(tmp_path: Path) -> None:
    told, config = init(tmp_path, "--operator", "ann", "--public-base-url", "https://gate.example/x/")
    checked = run("check", "--config", str(config))
    assert (checked.returncode, checked.stdout) == (0, f"{config}: no problems, 1 action, policy version 1.\n")
    settings = tomllib.loads(config.read_text())
    assert settings["public_base_url"] == "https://gate.example/x"
    (operator,) = settings["operators"]
    key = re.search(r"^ +(key-ann-[0-9a-f]{32})$", told, re.MULTILINE)
    assert key is not None
    assert operator["api_key_sha256"] == hashlib.sha256(key[1].encode()).hexdigest()
    assert operator["dpop_jkt"]
    for path in (tmp_path / "etc").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        assert path.is_dir() or key[1] not in path.read_text()


def test_each_principal_has_a_quota_and_data_that_is_there_is_kept(tmp_path: Path) -> None:
    told, config = init(tmp_path)
    data = config.parent / "policy" / "data.json"
    assert json.loads(data.read_text())["limits"] == {"default": {"max_calls_per_hour": 3600, "max_sessions": 32}}
    assert "3600 calls an\n   hour and 32 leases" in told
    data.write_text('{"policy_version": "7"}\n')
    config.unlink()
    init(tmp_path)
    assert data.read_text() == '{"policy_version": "7"}\n'


def test_prometheus_accepts_the_proposed_configuration_unchanged(tmp_path: Path) -> None:
    _, config = init(tmp_path)
    text = config.read_text()
    proposed = '# [metrics]\n# listen = "127.0.0.1:9464"\n'
    assert proposed in text
    config.write_text(text.replace(proposed, proposed.replace("# ", "")))
    assert tomllib.loads(config.read_text())["metrics"] == {"listen": "127.0.0.1:9464"}
    assert run("check", "--config", str(config)).returncode == 0


def test_the_next_steps_name_each_place(tmp_path: Path) -> None:
    told, config = init(tmp_path)
    for place in ("operator.pem", "policy/data.json", "actions", "gateway.toml"):
        assert str(config.parent / place) in told
    assert f"gateway check --config {config}" in told
    assert f"gateway run --config {config}" in told


def test_a_folder_that_has_a_configuration_is_left_as_it_is(tmp_path: Path) -> None:
    _, config = init(tmp_path)
    before = {path: path.read_bytes() for path in config.parent.rglob("*") if path.is_file()}
    refused = here(tmp_path, "init", "--production", str(config.parent))
    assert (refused.returncode, refused.stderr) == (
        Exit.CONFIG,
        f"gateway: {config} is there already; nothing was changed. Move it away, or name another DIR.\n",
    )
    assert {path: path.read_bytes() for path in config.parent.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--public-base-url", "ftp://x", "--public-base-url must be an http"), ("--operator", "A-B", "no operator name")],
)
def test_an_invalid_answer_is_refused_before_anything_is_written(
    tmp_path: Path, option: str, value: str, said: str
) -> None:
    refused = here(tmp_path, "init", "--production", str(tmp_path / "etc"), option, value)
    assert refused.returncode == Exit.USAGE
    assert said in refused.stderr
    assert not (tmp_path / "etc").exists()


def test_a_place_may_have_any_letter(tmp_path: Path) -> None:
    """TOML takes no pair of surrogates, which JSON in ASCII writes."""
    folder = tmp_path / 'an "etc" \U0001f600'
    _, config = init(folder)
    assert run("check", "--config", str(config)).returncode == 0
    assert tomllib.loads(config.read_text())["state_dir"] == str(folder / "state")


def test_data_that_is_no_text_is_said_and_no_configuration_is_written(tmp_path: Path) -> None:
    data = tmp_path / "etc" / "policy" / "data.json"
    data.parent.mkdir(parents=True)
    data.write_bytes(b"\xff")
    refused = here(tmp_path, "init", "--production", str(tmp_path / "etc"))
    assert (refused.returncode, "Traceback" in refused.stderr) == (Exit.CONFIG, False), refused.stderr
    assert f"{data} is not UTF-8" in refused.stderr
    assert not (tmp_path / "etc" / "gateway.toml").exists()
