"""The folder of actions' files beside all that the gateway reads or keeps: overlaps are refused, at every start too."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.dev.settings import DevOptions, load_dev
from supervisor.settings.checks.overlaps import overlap_problems
from supervisor.settings.config import check, open_document
from supervisor.settings.loading import load_for_production

BASE = """state_dir = "state"
public_base_url = "https://gate.example"
manifests_dir = "actions"
policy_dir = "policy"
modules_dir = "modules"
listen_uds_path = "run/gate.sock"
listen_admin_uds_path = "admin/gate.sock"
lease_signing_key_path = "keys/lease.pem"
egress_proxy_url = "http://127.0.0.1:3128"
"""
TABLES = """[ledger]
path = "ledger/ledger.sqlite3"
[secrets]
file = "secrets/secrets.json"
[egress]
proxy_allowlist_file = "squid/domains"
[[operators]]
name = "ann"
api_key_file = "credentials/ann"
[[webhooks]]
name = "chat"
url = "https://hooks.example/"
secret_file = "hooks/chat"
"""


def overlaps(folder: Path, top: str, tables: str = TABLES, base: str = BASE) -> list[str]:
    (folder / "credentials").mkdir(exist_ok=True)
    (folder / "credentials" / "ann").write_text("key-ann-" + "0" * 32)
    (folder / "credentials" / "ann").chmod(0o600)
    file = folder / "etc" / "gateway.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text((base + top + tables).replace('= "', f'= "{folder}/').replace(f"{folder}/http", "http")
                    .replace(f'name = "{folder}/', 'name = "'))  # fmt: skip
    problems = overlap_problems(check(*open_document(file, {})))
    return [str(one).replace(f"{folder}/etc/", "").replace(str(folder), "TOP") for one in problems]


@pytest.mark.parametrize("top", ["", 'files_dir = "state/files"\n', 'files_dir = "state/files/a"\n',
                                 'files_dir = "agents"\n', 'files_dir = "keys-of-others"\n'])  # fmt: skip
def test_a_folder_of_its_own_overlaps_nothing(tmp_path: Path, top: str) -> None:
    assert overlaps(tmp_path, top) == []


@pytest.mark.parametrize(
    ("files_dir", "setting", "line"),
    [
        ("actions", "manifests_dir = TOP/actions", 3),
        ("actions/files", "manifests_dir = TOP/actions", 3),
        ("policy", "policy_dir = TOP/policy", 4),
        ("policy/files", "policy_dir = TOP/policy", 4),
        ("modules", "modules_dir = TOP/modules", 5),
        ("modules/x", "modules_dir = TOP/modules", 5),
        ("run", "listen_uds_path = TOP/run", 6),
        ("run/files", "listen_uds_path = TOP/run", 6),
        ("admin", "listen_admin_uds_path = TOP/admin", 7),
        ("keys", "lease_signing_key_path = TOP/keys/lease.pem", 8),
        ("ledger", "ledger.path = TOP/ledger/ledger.sqlite3", 12),
        ("ledger/ledger.sqlite3/x", "ledger.path = TOP/ledger/ledger.sqlite3", 12),
        ("secrets", "secrets.file = TOP/secrets/secrets.json", 14),
        ("squid", "egress.proxy_allowlist_file = TOP/squid/domains", 16),
        ("credentials", "operators[0].api_key_file = TOP/credentials/ann", 19),
        ("hooks", "webhooks[0].secret_file = TOP/hooks/chat", 23),
    ],
)
def test_every_path_that_the_configuration_names_is_kept_apart(
    tmp_path: Path, files_dir: str, setting: str, line: int
) -> None:
    said = f"{setting}: overlaps the folder of actions' files, TOP/{files_dir}"
    problems = overlaps(tmp_path, f'files_dir = "{files_dir}"\n')
    assert problems == [f"gateway.toml:{line}  {said}. Agents may write there: keep them apart."]


@pytest.mark.parametrize("name", ["keys", "policy", "run", "modules-cache", "modules-cache.digests", "filesystem", "."])
def test_in_the_state_directory_files_alone_is_for_files(tmp_path: Path, name: str) -> None:
    folder = f"TOP/state/{name}".removesuffix("/.")
    (problem,) = overlaps(tmp_path, f'files_dir = "state/{name}"\n')
    assert problem == (
        f"gateway.toml:10  files_dir: the folder of actions' files, {folder}, overlaps what the gateway keeps in the "
        "state directory. Agents may write there: use TOP/state/files, without a link, or a folder elsewhere."
    )


def test_the_configuration_itself_is_kept_apart_and_all_overlaps_are_said_at_once(tmp_path: Path) -> None:
    problems = overlaps(tmp_path, 'files_dir = "."\n')
    assert len(problems) == 12 + 1  # every path and the configuration; the state directory beside them
    assert problems[0].startswith("gateway.toml  overlaps the folder of actions' files, TOP.")
    assert problems[-1].startswith("gateway.toml:10  files_dir: ")


def _link(path: Path, to: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(to)


LINKS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "the folder of files": (lambda top: _link(top / "agents", "policy"), "agents", "policy_dir"),
    "a folder above it": (lambda top: _link(top / "agents", "."), "agents/policy/x", "policy_dir"),
    "a configured folder": (lambda top: _link(top / "policy", "agents"), "agents", "policy_dir"),
    "a folder above that": (lambda top: _link(top / "hooks", "agents/in"), "agents", "webhooks[0].secret_file"),
    "files in the state directory": (lambda top: _link(top / "state" / "files", "keys"), "state/files", "files_dir"),
    "files to another place": (
        lambda top: _link(top / "state" / "files", "../policy"),
        "state/files",
        "policy_dir",
    ),
    "the state directory": (lambda top: _link(top / "state", "agents"), "agents/keys", "files_dir"),
}


@pytest.mark.parametrize(("make", "files_dir", "setting"), LINKS.values(), ids=LINKS)
def test_links_are_seen_through(tmp_path: Path, make: Callable[[Path], object], files_dir: str, setting: str) -> None:
    make(tmp_path)
    (problem,) = overlaps(tmp_path, f'files_dir = "{files_dir}"\n')
    assert problem.split("  ")[1].startswith(setting)


def test_a_link_to_a_folder_of_its_own_is_no_overlap(tmp_path: Path) -> None:
    _link(tmp_path / "state" / "files", "../elsewhere")
    assert overlaps(tmp_path, "") == []


def test_places_with_a_default_are_kept_apart_too(tmp_path: Path) -> None:
    base = 'state_dir = "state"\npublic_base_url = "https://gate.example"\n'
    file = tmp_path / "gateway.toml"
    file.write_text(base + 'files_dir = "/etc/gateway/policy/files"\n')
    (problem,) = overlap_problems(check(*open_document(file, {})))
    assert problem.text.startswith("policy_dir = /etc/gateway/policy: overlaps")


def test_both_modes_refuse_an_overlap_beside_every_other_problem(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'policy_dir = "{tmp_path}/policy"\nfiles_dir = "{tmp_path}/policy"\nlease_ttl_seconds = 0\n'
                    f'state_dir = "{tmp_path}/state"\npublic_base_url = "https://gate.example"\n')  # fmt: skip
    for loaded in (load_for_production(file, os.environ), load_dev(DevOptions(config=file), os.environ)):
        assert loaded.settings is None
        told = "\n".join(str(one) for one in loaded.problems)
        assert "policy_dir = " in told
        assert "lease_ttl_seconds = 0" in told
