"""The walls, in a process of their own: what they refuse, and that a wall that fails is fatal."""

import multiprocessing
import os
import resource
from collections.abc import Callable

import pytest

from workers.sandbox import profiles
from workers.sandbox.limits import apply_limits, refuse_new_privileges
from workers.sandbox.profiles import PROFILES, SandboxRefused, enter, prepare


def in_a_process(act: Callable[[], None]) -> None:
    """Run in a fresh interpreter, so that walls and threads of the test's own process stay out of it."""
    process = multiprocessing.get_context("spawn").Process(target=act)
    process.start()
    process.join(30)
    assert process.exitcode == 0
    process.close()


def entered_compute() -> None:
    enter(prepare("compute"))
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (8, 8)
    opened: list[int] = []
    try:
        while len(opened) < 20:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    assert len(opened) < 8
    try:
        bytearray(profiles.WORKER_DATA_BYTES)
    except MemoryError:
        return
    raise AssertionError("the limit on data did not hold")


def entered_as_somebody() -> None:
    if os.geteuid() != 0:
        return
    os.setgid(12345)
    os.setuid(12345)
    enter(prepare("fs"))
    assert resource.getrlimit(resource.RLIMIT_NPROC) == (0, 0)
    try:
        pid = os.fork()
    except OSError:
        return
    if pid == 0:
        os._exit(0)
    raise AssertionError("a new process could be started")


def lowered_twice() -> None:
    apply_limits({resource.RLIMIT_NOFILE: 64})
    apply_limits({resource.RLIMIT_NOFILE: 128})
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 64)
    refuse_new_privileges()
    refuse_new_privileges()


@pytest.mark.parametrize("act", [entered_compute, entered_as_somebody, lowered_twice])
def test_the_walls_hold(act: Callable[[], None]) -> None:
    in_a_process(act)


def test_a_profile_that_nobody_knows_has_no_walls_and_is_refused() -> None:
    with pytest.raises(SandboxRefused):
        prepare("smtp")


def test_a_wall_that_can_not_be_built_is_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(1, "no")

    monkeypatch.setattr(profiles, "refuse_new_privileges", refuse)
    with pytest.raises(SandboxRefused):
        enter(PROFILES["compute"])


def test_profiles_have_the_imports_that_select_them_and_no_others() -> None:
    assert {name: sorted(profile.interfaces) for name, profile in PROFILES.items()} == {
        "compute": ["clock", "log"], "http": ["clock", "http", "log"], "fs": ["clock", "fs", "log"],
    }  # fmt: skip
