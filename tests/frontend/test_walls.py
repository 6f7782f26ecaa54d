"""Which places a front reaches: what its configuration names, and no folder that holds ledger or keys."""

from pathlib import Path

import pytest

from frontend import walls
from frontend.walls import FrontPlaces
from ipc.settings import EgressSettings, LedgerSettings, SecretSettings, Settings
from ipc.walls.landlock import CHANGE, READ


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """A folder for everything, as a small installation has it."""
    for name in ("state/fronts", "state/keys", "state/policy", "actions", "secret", "squid", "ledger"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def settings(folder: Path, **changes: object) -> Settings:
    values: dict[str, object] = {
        "state_dir": str(folder / "state"), "public_base_url": "http://h", "manifests_dir": str(folder / "actions"),
        "policy_dir": str(folder / "state" / "policy"),
        "ledger": LedgerSettings(path=str(folder / "ledger" / "ledger.sqlite3")),
        "secrets": SecretSettings(file=str(folder / "secret" / "secrets.toml")),
        "egress": EgressSettings(proxy_allowlist_file=str(folder / "squid" / "domains")),
    }  # fmt: skip
    return Settings(**values | changes)  # type: ignore[arg-type]


def reached(folder: Path, found: Settings) -> tuple[dict[str, int], list[str]]:
    """Places below this folder and what may be done there; and what is fixed."""
    places = FrontPlaces(found)
    rights: dict[str, int] = {}
    for place in places.all():
        if Path(place.path).is_relative_to(folder):
            name = str(Path(place.path).relative_to(folder))
            rights[name] = rights.get(name, 0) | place.rights
    return rights, [str(Path(one).relative_to(folder)) for one in places.fixed]


def test_a_front_reaches_what_is_named_and_no_folder_above_ledger_or_keys(layout: Path) -> None:
    rights, fixed = reached(layout, settings(layout))
    assert rights == {
        "state/fronts": CHANGE, "state/policy": CHANGE, "actions": READ, "secret": READ, "squid": CHANGE
    }  # fmt: skip
    assert fixed == ["state/policy", "actions"]


def test_a_secret_beside_the_state_directory_is_reached_alone(layout: Path) -> None:
    rights, fixed = reached(layout, settings(layout, secrets=SecretSettings(file=str(layout / "secrets.toml"))))
    assert "." not in rights
    assert rights["secrets.toml"] == READ
    assert "secrets.toml" in fixed


def test_what_lies_in_folders_of_its_own_may_be_replaced_whole(layout: Path) -> None:
    (layout / "etc" / "actions").mkdir(parents=True)
    (layout / "etc" / "policy").mkdir()
    here = {"manifests_dir": str(layout / "etc" / "actions"), "policy_dir": str(layout / "etc" / "policy")}
    rights, fixed = reached(layout, settings(layout, **here))
    assert (rights["etc"], fixed) == (READ, [])
    keyed = settings(layout, **here, lease_signing_key_path=str(layout / "etc" / "keys" / "lease.pem"))
    rights, fixed = reached(layout, keyed)
    assert "etc" not in rights
    assert fixed == ["etc/policy", "etc/actions"]


def test_a_folder_is_known_by_what_it_is_and_not_by_its_name(layout: Path) -> None:
    (layout / "elsewhere").mkdir()
    (layout / "elsewhere" / "link").symlink_to(layout / "state")
    linked_settings = settings(layout, secrets=SecretSettings(file=str(layout / "elsewhere" / "link" / "secrets.toml")))
    rights, _ = reached(layout, linked_settings)
    assert "state" not in rights
    assert "elsewhere/link" not in rights


def test_all_of_etc_is_reached_only_where_names_need_it_and_no_key_lies_there(
    layout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = layout / "system"
    system.mkdir()
    servers = system / "resolv.conf"
    servers.write_text("nameserver 192.0.2.1\n")
    monkeypatch.setattr(walls, "_SYSTEM", str(system))
    monkeypatch.setattr(walls, "_SERVERS_FILE", str(servers))
    assert reached(layout, settings(layout))[0]["system"] == READ
    keyed = settings(layout, grant_signing_key_path=str(system / "keys" / "grant.pem"))
    assert "system" not in reached(layout, keyed)[0]
    servers.unlink()
    servers.symlink_to("/run/resolv.conf")
    assert "system" not in reached(layout, settings(layout))[0]
