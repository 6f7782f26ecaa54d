"""`gatectl mcp install` and `uninstall`: the configuration files of agents' hosts, changed without losing anything."""

import json
from pathlib import Path

import pytest
from gateway_client.cli.mcp_hosts.hosts import HOSTS

from tests.support.gatectl import SCRIPT, Gatectl

COMMENTED = """// of the user
{
    "theme": "One", // dark
    "context_servers": {
        /* another */
        "other": {"command": "x", "env": {"TOKEN": "s3cret"}},
    },
}
"""


@pytest.fixture
def user(empty: Gatectl, tmp_path: Path) -> Gatectl:
    """gatectl with a home directory of its own."""
    return empty.with_environment(HOME=str(tmp_path / "home"))


def zed(user: Gatectl, text: str) -> Path:
    file = user.home / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("host", HOSTS)
def test_each_host_is_given_the_command_in_its_file_and_loses_it_again(user: Gatectl, host: str) -> None:
    told = user.done("mcp", "install", host, "--address", "http://h:1", "--json").json
    file = HOSTS[host].path(user.environ)
    entry = json.loads(file.read_text())[HOSTS[host].servers]["gateway"]
    assert (entry["command"], entry["args"]) == (SCRIPT, ["mcp", "--address", "http://h:1"])
    assert (told["file"], told["state"], told["copy"]) == (str(file), "changed", None)
    listed = user.done("mcp", "install", "--list", "--json").json
    assert [one["host"] for one in listed if one["state"] == "installed"] == [host]
    gone = user.done("mcp", "uninstall", host, "--json").json
    assert json.loads(file.read_text()) == {}
    assert "gateway" in Path(gone["copy"]).read_text()


def test_comments_and_mode_stay_and_a_private_copy_is_kept(user: Gatectl) -> None:
    file = zed(user, COMMENTED)
    file.chmod(0o640)
    told = user.done("mcp", "--wait", "50", "install", "zed").out
    assert "s3cret" not in told
    assert '"args": ["mcp", "--wait", "50"]' in told
    assert (file.stat().st_mode & 0o777, "// dark" in file.read_text()) == (0o640, True)
    (copy,) = file.parent.glob("*.bak")
    assert (copy.read_text(), copy.stat().st_mode & 0o777) == (COMMENTED, 0o600)
    changed = file.read_bytes()
    assert "unchanged" in user.done("mcp", "--wait", "50", "install", "zed").out
    assert (file.read_bytes(), len(list(file.parent.iterdir()))) == (changed, 2)
    user.done("mcp", "uninstall", "zed")
    assert file.read_text() == COMMENTED


def test_a_dry_run_shows_the_change_and_writes_nothing(user: Gatectl) -> None:
    file = zed(user, COMMENTED)
    assert '+            "source": "custom",' in user.done("mcp", "install", "zed", "--dry-run").out
    assert (file.read_text(), len(list(file.parent.iterdir()))) == (COMMENTED, 1)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "// nothing", '{"a": 1, "a": 2}', '{"a": 1} 2', '{"context_servers": []}', "{'a': 1}",
     '{"context_servers": {"gateway": {"command": "/bin/other", "args": ["mcp"]}}}'],
)  # fmt: skip
def test_a_file_that_is_not_understood_stays_as_it_is(user: Gatectl, text: str) -> None:
    file = zed(user, text)
    ran = user.here("mcp", "install", "zed", "--json")
    assert (ran.code in {2, 5}, ran.error["error"]) == (True, "host_file")
    assert (file.read_text(), len(list(file.parent.iterdir()))) == (text, 1)


def test_a_link_stays_one_and_what_a_user_added_stays(user: Gatectl, tmp_path: Path) -> None:
    file = zed(user, COMMENTED)
    kept = file.rename(tmp_path / "kept.json")
    file.symlink_to(kept)
    user.done("mcp", "install", "zed")
    kept.write_text(kept.read_text().replace('"args": ["mcp"]', '"args": ["mcp"], "env": {"LANG": "C"}'))
    moved = user.with_environment(GATECTL_ADDRESS="http://h:1")
    moved.done("mcp", "install", "zed")
    assert file.is_symlink()
    assert '"LANG": "C"' in kept.read_text()
    assert '"GATECTL_ADDRESS": "http://h:1"' in kept.read_text()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{"context_servers": {}, "a": 1}', '{"a": 1}'),
        ('{"context_servers": {/* none */}}', '{"context_servers": {/* none */}}'),
    ],
)
def test_no_empty_object_is_left_but_one_with_a_comment(user: Gatectl, text: str, left: str) -> None:
    file = zed(user, text)
    user.done("mcp", "install", "zed")
    user.done("mcp", "uninstall", "zed")
    assert "".join(file.read_text().split()) == "".join(left.split())


def test_options_are_given_as_they_were_written(user: Gatectl) -> None:
    options = ["--scope", "read:v1.0", "--max-calls", "10", "--wait", "2.5", "--refresh", "60"]
    user.done("mcp", *options, "install", "cursor")
    entry = json.loads((Path(user.environ["HOME"]) / ".cursor/mcp.json").read_text())["mcpServers"]["gateway"]
    assert entry["args"] == ["mcp", *options]
