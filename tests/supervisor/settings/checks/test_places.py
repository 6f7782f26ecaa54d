"""Places of a configuration as `gateway check` looks at them: what a start would trip over, with a mend."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from supervisor.settings.checks.places import place_problems
from supervisor.settings.config import check, open_document

CONFIG = """state_dir = "state"
public_base_url = "https://gate.example"
egress_proxy_url = "http://127.0.0.1:3128"
listen_uds_path = "run/gate.sock"
listen_admin_uds_path = "run/gate-admin.sock"
[egress]
proxy_allowlist_file = "squid/domains"
"""


def problems(folder: Path, config: str = CONFIG) -> list[str]:
    file = folder / "gateway.toml"
    file.write_text(config)
    loaded = check(*open_document(file, {}))
    return [str(one).replace(str(folder), "ETC") for one in place_problems(loaded)]


def test_a_private_folder_is_no_problem_with_or_without_a_list_and_stays_unchanged(tmp_path: Path) -> None:
    (tmp_path / "squid").mkdir(mode=0o755)
    assert problems(tmp_path) == []
    assert os.listdir(tmp_path / "squid") == []
    (tmp_path / "squid" / "domains").write_text("whatever\n")
    assert problems(tmp_path) == []
    assert (tmp_path / "squid" / "domains").read_text() == "whatever\n"


@pytest.mark.parametrize("open_to_all", ["gateway.toml", "policy", "policy/team/rules.rego", "actions/pay.yaml"])
def test_files_that_decide_and_that_every_user_may_write_are_said(tmp_path: Path, open_to_all: str) -> None:
    (tmp_path / "squid").mkdir(mode=0o755)
    (tmp_path / "policy" / "team").mkdir(parents=True)
    (tmp_path / "actions").mkdir()
    for name in ("policy/team/rules.rego", "actions/pay.yaml"):
        (tmp_path / name).touch()
    config = f'policy_dir = "policy"\nmanifests_dir = "actions"\n{CONFIG}'
    assert problems(tmp_path, config) == []
    (tmp_path / open_to_all).chmod(0o666 | (tmp_path / open_to_all).stat().st_mode)
    (told,) = problems(tmp_path, config)
    named = "this file" if open_to_all == "gateway.toml" else f"ETC/{open_to_all}"
    assert f" {named} can be written by every user of this host. Run chmod -R o-w ETC/" in told
    loaded = check(*open_document(tmp_path / "gateway.toml", {}))
    assert loaded.judged is not None
    assert place_problems(replace(loaded, judged=replace(loaded.judged, dev_mode=True))) == []


def _give_away(path: Path) -> None:
    os.chown(path, 12345, -1)


ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
FOLDER: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: folder.rmdir(), "is not there. Make it, with the gateway's user as its owner and mode 0755."),
    (lambda folder: folder.chmod(0o775), "can be written by other users (mode 0775). Run chmod go-w on it."),
    (lambda folder: folder.chmod(0o1777), "can be written by other users (mode 1777). Run chmod go-w on it."),
]
FILE: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.mkdir(), "is not a regular file. Move it away, or name the file itself."),
    (lambda path: path.symlink_to("/dev/null"), "is a link. Move it away, or name the file itself."),
    (lambda path: path.symlink_to("nowhere"), "is a link. Move it away, or name the file itself."),
]


@pytest.mark.parametrize(("spoil", "problem"), FOLDER)
def test_problems_of_the_folder_are_reported_at_the_setting(
    tmp_path: Path, spoil: Callable[[Path], object], problem: str
) -> None:
    (tmp_path / "squid").mkdir(mode=0o755)
    spoil(tmp_path / "squid")
    assert problems(tmp_path) == [f"ETC/gateway.toml:7  egress.proxy_allowlist_file: ETC/squid {problem}"]


@pytest.mark.parametrize(("spoil", "problem"), FILE)
def test_problems_of_the_file_are_reported_at_the_setting(
    tmp_path: Path, spoil: Callable[[Path], object], problem: str
) -> None:
    (tmp_path / "squid").mkdir(mode=0o755)
    spoil(tmp_path / "squid" / "domains")
    assert problems(tmp_path) == [f"ETC/gateway.toml:7  egress.proxy_allowlist_file: ETC/squid/domains {problem}"]
    assert stat.S_IMODE((tmp_path / "squid").stat().st_mode) == 0o755


@ROOT
def test_a_file_and_a_folder_of_another_user_are_said(tmp_path: Path) -> None:
    (tmp_path / "squid").mkdir(mode=0o755)
    (tmp_path / "squid" / "domains").touch()
    _give_away(tmp_path / "squid" / "domains")
    mend = "belongs to another user (uid 12345). Run this as the gateway's user, or use chown."
    assert problems(tmp_path) == [f"ETC/gateway.toml:7  egress.proxy_allowlist_file: ETC/squid/domains {mend}"]
    _give_away(tmp_path / "squid")
    assert f"ETC/gateway.toml:7  egress.proxy_allowlist_file: ETC/squid {mend}" in problems(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "squid").write_text("no folder")
    (problem,) = problems(tmp_path)
    assert problem == (
        "ETC/gateway.toml:7  egress.proxy_allowlist_file: ETC/squid is not a folder. Move it away, or name another."
    )


def test_a_list_beside_the_state_directory_would_open_it_to_fronts(tmp_path: Path) -> None:
    (told,) = problems(tmp_path, CONFIG.replace("squid/domains", "domains"))
    place = "ETC/gateway.toml:7  egress.proxy_allowlist_file: ETC"
    assert told == f"{place} holds the state directory, the ledger or a key. Give the list a folder of its own."


def test_a_ledger_that_is_no_database_and_modules_that_can_not_be_kept_are_said(tmp_path: Path) -> None:
    (tmp_path / "squid").mkdir(mode=0o755)
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "ledger.sqlite3").write_bytes(b"this is no database" * 1000)
    (tmp_path / "state" / "modules-cache").write_text("this is no folder")
    place = "ETC/gateway.toml:1  state_dir: ETC/state"
    assert problems(tmp_path) == [
        f"{place}/modules-cache is not a folder. Move it away: the gateway makes it.",
        f"{place}/ledger.sqlite3 is not a SQLite database. Put the ledger back from a backup (docs/operations.md).",
    ]


def test_a_state_directory_or_a_ledger_that_is_a_link_to_nothing_is_said(tmp_path: Path) -> None:
    tmp_path.joinpath("link").symlink_to(tmp_path / "gone")
    place = tmp_path / "link"
    assert of_setting(tmp_path, f'state_dir = "{place}"') == [
        f"g.toml:1  state_dir: {place} is a link to nothing. Make what it leads to, or remove it."
    ]
    assert of_setting(tmp_path, f'state_dir = "state"\nledger.path = "{place}"') == [
        f"g.toml:2  ledger.path: {place} is a link to nothing. Make what it leads to, or remove it."
    ]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_state_directory_that_every_user_could_replace_is_said(tmp_path: Path, is_there: bool) -> None:
    above = tmp_path / "open"
    above.mkdir()
    if is_there:
        (above / "state").mkdir(mode=0o700)
    above.chmod(0o777)
    (told,) = of_setting(tmp_path, f'state_dir = "{above / "state"}"')
    assert told == (
        f"g.toml:1  state_dir: {above / 'state'} can be replaced by every user, as {above} is open to them. "
        f"Run chmod o-w {above}."
    )


def test_a_ledger_that_is_no_file_is_said_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger")
    for place in (tmp_path / "ledger", Path("/dev/null"), tmp_path):
        assert of_setting(tmp_path, f'state_dir = "state"\nledger.path = "{place}"') == [
            f"g.toml:2  ledger.path: {place} is not a regular file. Move it away, or name another."
        ]


def of_setting(folder: Path, text: str) -> list[str]:
    """The problems of these settings alone."""
    file = folder / "g.toml"
    file.write_text(text)
    told = place_problems(check(*open_document(file, {})))
    return [str(one).removeprefix(f"{folder}/") for one in told if one.field in ("state_dir", "ledger.path")]
