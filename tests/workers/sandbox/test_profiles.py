"""The walls, in a process of their own: what they refuse, and that a wall that fails is fatal."""

import multiprocessing
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.limits import MAX_ACTION_FILE_BYTES
from ipc.walls import confining, namespaces
from ipc.walls.confining import WallRefused
from ipc.walls.given import NETWORK_NAMESPACE, USER_NAMESPACE, Given
from ipc.walls.landlock import PathRule
from ipc.walls.limits import apply_limits
from ipc.walls.privileges import SYS_ADMIN, refuse_new_privileges
from workers.sandbox import profiles
from workers.sandbox.filters import fs_rules, program_of
from workers.sandbox.profiles import PROFILES, enter, prepare

PATIENCE = 120.0
"""Seconds for what must come: a fresh interpreter that imports this file, on a machine with other things to do."""


def in_a_process(act: Callable[[], None]) -> None:
    """Run in a fresh interpreter, so that walls and threads of the test's own process stay out of it."""
    process = multiprocessing.get_context("spawn").Process(target=act)
    process.start()
    process.join(PATIENCE)
    exitcode = process.exitcode
    process.close()
    assert exitcode == 0


def nothing() -> None:
    """No thread is needed."""


def entered(name: str) -> None:
    """Build the walls of this profile around this process, with the folder of this very test as that of all files."""
    enter(prepare(name, Given(), "/nowhere"), nothing)


def leave(is_sound: bool) -> None:
    """End a walled process: an interpreter that takes itself down would do what the filter kills for."""
    os._exit(0 if is_sound else 1)


def entered_compute() -> None:
    limits = PROFILES["compute"].limits
    entered("compute")
    assert limits[resource.RLIMIT_CORE] == 0
    assert limits[resource.RLIMIT_NOFILE] == 8
    copies: list[int] = []
    try:
        while len(copies) < 20:
            copies.append(os.dup(2))
    except OSError:
        pass
    try:
        bytearray(profiles.WORKER_DATA_BYTES)
    except MemoryError:
        leave(len(copies) < 8)
    leave(False)


def test_an_fs_worker_writes_no_file_that_no_action_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "can_forbid_files", lambda: True)
    assert PROFILES["fs"].limits[resource.RLIMIT_FSIZE] == MAX_ACTION_FILE_BYTES
    assert PROFILES["compute"].limits[resource.RLIMIT_FSIZE] == 0


def entered_with_threads() -> None:
    ready, go_on = threading.Event(), threading.Event()
    counts: list[int] = []

    def look() -> None:
        ready.set()
        go_on.wait(PATIENCE)
        counts.append(Path("/proc/thread-self/status").read_text().count("Seccomp:\t2"))

    thread = threading.Thread(target=look, daemon=True)
    confinement = confining.Confinement(
        confining.Walls(filter=program_of(fs_rules), places=(PathRule("/proc", 0xC),)), Given()
    )
    confinement.confine()
    thread.start()
    ready.wait(PATIENCE)
    confinement.seal()
    go_on.set()
    thread.join(PATIENCE)
    leave(counts == [1])


def lowered_twice() -> None:
    apply_limits({resource.RLIMIT_NOFILE: 64})
    apply_limits({resource.RLIMIT_NOFILE: 128})
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 64)
    refuse_new_privileges()
    refuse_new_privileges()


@pytest.mark.parametrize("act", [entered_compute, entered_with_threads, lowered_twice])
def test_no_step_beyond_the_walls_of_a_profile_succeeds(act: Callable[[], None]) -> None:
    in_a_process(act)


def test_an_unknown_profile_has_no_walls_and_is_refused() -> None:
    with pytest.raises(WallRefused):
        prepare("smtp", Given(), "/nowhere")


STEPS = (
    "become", "unshare", "see_no_files", "keep_capabilities", "refuse_new_privileges", "refuse_core_dumps",
    "die_with_parent", "restrict", "apply_limits", "install",
)  # fmt: skip


def refused_at(step: str) -> None:
    """End with 0 if a wall that fails at this step keeps the worker from serving."""

    def refuse(*_: object) -> None:
        raise OSError(1, "no")

    for name in STEPS:
        setattr(confining, name, nothing_of)
    setattr(confining, step, refuse)
    given = Given(uid=65534, gid=65534)
    try:
        enter(prepare("compute", given, "/nowhere"), nothing)
    except WallRefused:
        leave(True)
    leave(False)


def nothing_of(*_: object) -> None:
    """A step that does nothing, so that the one under test is reached as any user."""


@pytest.mark.parametrize("step", STEPS)
def test_a_wall_that_can_not_be_built_is_fatal(step: str) -> None:
    process = multiprocessing.get_context("spawn").Process(target=refused_at, args=(step,))
    process.start()
    process.join(PATIENCE)
    exitcode = process.exitcode
    process.close()
    assert exitcode == 0


def kinds_without(missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which namespaces a compute worker leaves where these are missing."""
    left: list[int] = []
    for name in STEPS:
        monkeypatch.setattr(confining, name, nothing_of)
    monkeypatch.setattr(confining, "keep_mounts_private", nothing)
    monkeypatch.setattr(confining, "unshare", left.append)
    monkeypatch.setattr(confining, "held", lambda: frozenset({SYS_ADMIN}))
    given = Given(missing=missing)
    confinement = confining.Confinement(PROFILES["compute"].walls(given, "/nowhere"), given)
    before = dict(os.environ)
    confinement.confine()
    os.environ.update(before)
    return left


def test_only_what_was_found_missing_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    others = namespaces.IPC | namespaces.MOUNT
    assert kinds_without((), monkeypatch) == [namespaces.USER | others | namespaces.NETWORK]
    assert kinds_without((NETWORK_NAMESPACE,), monkeypatch) == [namespaces.USER | others]
    assert kinds_without((USER_NAMESPACE,), monkeypatch) == [others | namespaces.NETWORK]


def test_profiles_have_the_imports_that_select_them_and_no_others() -> None:
    assert {name: sorted(profile.interfaces) for name, profile in PROFILES.items()} == {
        "compute": ["clock", "log"], "http": ["clock", "http", "log"], "fs": ["clock", "fs", "log"],
    }  # fmt: skip
