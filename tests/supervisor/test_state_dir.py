"""The state directory: private, ours, held by one at a time."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.refusal import Refused
from supervisor.state_dir import hold_state_dir


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_private_with_its_parents_and_locked(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with ExitStack() as cleanup:
        hold_state_dir(folder, cleanup, is_mended=True)
        assert mode(folder) == 0o700
        assert (folder / "gateway.lock").read_text() == f"{os.getpid()}\n"
        assert mode(folder / "gateway.lock") == 0o600
        with pytest.raises(Refused) as caught:
            hold_state_dir(folder, cleanup, is_mended=True)
        assert caught.value.code == Exit.LOCKED
        assert caught.value.sentence == f"state directory {folder} is held by another gateway (pid {os.getpid()})."
    with ExitStack() as cleanup:
        hold_state_dir(folder, cleanup, is_mended=True)


def test_an_empty_folder_that_is_open_is_closed_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path, cleanup, is_mended=True)
        assert mode(tmp_path) == 0o700


def test_a_folder_that_was_a_gateways_before_is_closed_again(tmp_path: Path) -> None:
    (tmp_path / "gateway.lock").touch()
    tmp_path.chmod(0o755)
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path, cleanup, is_mended=True)
        assert mode(tmp_path) == 0o700


def test_an_open_folder_full_of_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    tmp_path.chmod(0o755)
    with ExitStack() as cleanup, pytest.raises(Refused, match="has mode 0755, and keys lie in it") as caught:
        hold_state_dir(tmp_path, cleanup, is_mended=True)
    assert caught.value.code == Exit.NO_PERMISSION
    assert mode(tmp_path) == 0o755
    assert sorted(one.name for one in tmp_path.iterdir()) == ["thesis.txt"]


@pytest.mark.parametrize("other", [0o750, 0o701, 0o770, 0o777, 0o500, 0o1777])
def test_outside_dev_mode_another_mode_is_refused_with_its_mend_and_left_as_it_is(tmp_path: Path, other: int) -> None:
    (tmp_path / "gateway.lock").touch()
    tmp_path.chmod(other)
    with ExitStack() as cleanup, pytest.raises(Refused) as caught:
        hold_state_dir(tmp_path, cleanup, is_mended=False)
    assert caught.value.code == Exit.NO_PERMISSION
    assert caught.value.sentence == (
        f"state directory {tmp_path} has mode {other:04o}, and keys lie in it. "
        f"Run chmod 0700 {tmp_path}, or name another."
    )
    assert mode(tmp_path) == other
    tmp_path.chmod(0o700)
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path, cleanup, is_mended=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("is_mended", [True, False])
def test_somebody_elses_folder_is_refused(tmp_path: Path, is_mended: bool) -> None:
    os.chown(tmp_path, 65534, 65534)
    with ExitStack() as cleanup, pytest.raises(Refused, match="belongs to another user") as caught:
        hold_state_dir(tmp_path, cleanup, is_mended=is_mended)
    assert caught.value.code == Exit.NO_PERMISSION


@pytest.mark.parametrize(("open_to", "is_refused"), [(0o777, True), (0o1777, False), (0o775, False)])
def test_a_folder_that_every_user_could_replace_is_refused(tmp_path: Path, open_to: int, is_refused: bool) -> None:
    (tmp_path / "open").mkdir()
    folder = tmp_path / "open" / "gateway" / "state"
    with ExitStack() as cleanup:
        hold_state_dir(folder, cleanup, is_mended=False)
    (tmp_path / "open").chmod(open_to)
    with ExitStack() as cleanup:
        if not is_refused:
            hold_state_dir(folder, cleanup, is_mended=False)
            return
        with pytest.raises(Refused) as caught:
            hold_state_dir(folder, cleanup, is_mended=False)
    above = tmp_path / "open"
    assert caught.value.code == Exit.NO_PERMISSION
    assert caught.value.sentence == (
        f"state directory {folder} can be replaced by every user, as {above} is open to them. Run chmod o-w {above}."
    )


def test_dev_mode_takes_a_folder_that_every_user_could_replace(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path / "state", cleanup, is_mended=True)


def test_the_top_of_a_volume_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda self: self == tmp_path)
    tmp_path.chmod(0o777)
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path / "state", cleanup, is_mended=False)


def test_a_file_in_its_place_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with ExitStack() as cleanup, pytest.raises(Refused) as caught:
            hold_state_dir(folder, cleanup, is_mended=True)
        assert caught.value.code == Exit.NO_PERMISSION
    with ExitStack() as cleanup, pytest.raises(Refused):
        hold_state_dir(Path("/proc/gateway/state"), cleanup, is_mended=True)


def test_a_folder_that_was_made_for_nothing_is_removed_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with ExitStack() as cleanup:
        hold_state_dir(folder, cleanup, is_mended=True)
        (folder / "gateway.lock").unlink()
    assert not (tmp_path / "a").exists()


def test_the_lock_is_not_followed_to_somewhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / "gateway.lock").symlink_to(tmp_path / "victim")
    with ExitStack() as cleanup, pytest.raises(Refused, match="can't be used"):
        hold_state_dir(folder, cleanup, is_mended=True)
    assert not (tmp_path / "victim").exists()


def test_learned_rules_of_an_earlier_version_are_moved_to_the_fronts_folder(tmp_path: Path) -> None:
    (tmp_path / "learned.json").write_text("rules")
    (tmp_path / "learned.json.lock").touch()
    tmp_path.chmod(0o700)
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path, cleanup, is_mended=False)
        assert (tmp_path / "fronts" / "learned.json").read_text() == "rules"
        assert (tmp_path / "fronts").stat().st_mode & 0o777 == 0o700
    (tmp_path / "learned.json").write_text("of nobody")
    with ExitStack() as cleanup:
        hold_state_dir(tmp_path, cleanup, is_mended=False)
    assert (tmp_path / "fronts" / "learned.json").read_text() == "rules", "what is there is never written over"
    assert not (tmp_path / "learned.json.lock").exists()
