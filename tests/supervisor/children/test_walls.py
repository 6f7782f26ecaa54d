"""A gateway on a machine without walls refuses to start in production, warns in development, and reports it
everywhere."""

import os
import pwd

import msgspec
import pytest

from ipc.process.exits import Exit
from ipc.settings import SandboxSettings, Settings
from ipc.walls.found import missing_walls
from ipc.walls.given import LANDLOCK, OWN_USER, Given
from ipc.walls.privileges import User
from supervisor.children import walls
from supervisor.children.walls import find_walls, with_walls
from supervisor.commands.examine.doctor import rows
from supervisor.refusal import Refused
from supervisor.settings.checks.production import weakened

SETTINGS = Settings(state_dir="/s", public_base_url="https://gate.example")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's children become another user")


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Landlock."""
    monkeypatch.setattr(walls, "missing_walls", lambda _: (LANDLOCK,))


@pytest.mark.usefixtures("lacking")
def test_production_is_refused_where_a_wall_is_missing() -> None:
    with pytest.raises(Refused) as refused:
        with_walls(SETTINGS)
    assert refused.value.code == Exit.CONFIG
    assert "landlock" in refused.value.sentence
    assert "unsafe_degraded_sandbox" in refused.value.sentence


@pytest.mark.usefixtures("lacking")
@pytest.mark.parametrize("change", [{"dev_mode": True}, {"unsafe_degraded_sandbox": True}])
def test_a_gateway_that_allows_missing_walls_serves_and_says_so(change: dict[str, bool]) -> None:
    settings = with_walls(msgspec.structs.replace(SETTINGS, **change))
    assert settings.walls.missing == (LANDLOCK,)
    assert "sandbox without landlock" in weakened(settings)


def test_leave_to_do_without_shows_even_where_nothing_is_missing() -> None:
    assert weakened(msgspec.structs.replace(SETTINGS, operators=(), unsafe_degraded_sandbox=True)) == (
        "unsafe_degraded_sandbox",
    )


@only_root
def test_children_of_root_become_the_user_that_is_named() -> None:
    nobody = pwd.getpwnam("nobody")
    assert find_walls(SETTINGS).user == User(nobody.pw_uid, nobody.pw_gid)


@only_root
@pytest.mark.parametrize("name", ["no-such-user", "root"])
def test_a_user_that_does_not_exist_or_is_root_is_refused(name: str) -> None:
    with pytest.raises(Refused, match=name) as refused:
        find_walls(msgspec.structs.replace(SETTINGS, sandbox=SandboxSettings(user=name)))
    assert refused.value.code == Exit.CONFIG


@only_root
def test_root_without_another_user_lacks_that_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "can_become", lambda _: False)
    given = find_walls(SETTINGS)
    assert given.missing[0] == OWN_USER
    assert given.user is None


def test_this_machine_gives_every_wall() -> None:
    missing = missing_walls(find_walls(SETTINGS).user)
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    assert missing == ()


def test_doctor_has_a_row_for_each_wall_of_each_process_and_the_mend_of_what_is_missing() -> None:
    table = rows(Given((LANDLOCK,)), is_root=False)
    mended = {process for process, wall, state, mend in table if state == "missing" and wall == LANDLOCK and mend}
    assert mended == {process for process, *_ in table} - {"template"}
    assert {state for _, wall, state, _ in table if wall == OWN_USER} == {"not needed"}
