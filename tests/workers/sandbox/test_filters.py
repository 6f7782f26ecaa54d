"""The verdicts of each profile's compiled filter on system calls; they agree with the table of walls."""

import errno
import os

import pytest

from ipc.settings import Settings
from ipc.walls import given as names
from ipc.walls.bpf import ALLOW, KILL
from ipc.walls.bpf import errno as refusal
from ipc.walls.calls import forbidden
from ipc.walls.confining import Walls
from ipc.walls.given import Given
from ipc.walls.kinds import KINDS, MENDS
from ipc.walls.seccomp import compile_rules
from ipc.walls.syscalls import AUDIT_ARCH, MACHINE, NUMBERS, number_of
from tests.support.filters import decoded, outcome
from workers.sandbox import policy, template
from workers.sandbox.filters import rules_of
from workers.sandbox.profiles import PROFILES

SHOULD_END = """
    execve execveat fork vfork clone clone3 ptrace process_vm_readv process_vm_writev kill tkill tgkill bpf keyctl
    add_key request_key io_uring_setup io_uring_enter userfaultfd perf_event_open unshare setns mount umount2
    pivot_root chroot setuid setresuid capset seccomp pidfd_open pidfd_getfd memfd_create init_module kexec_load
    open_by_handle_at listen accept accept4 socketpair pkey_mprotect personality symlinkat linkat fchmodat fchownat
"""


def judged(profile: str, name: str, *arguments: int, machine: str = MACHINE) -> int:
    """Return the verdict of a profile's filter on a system call."""
    number = number_of(name, machine)
    assert number is not None
    program = decoded(compile_rules(rules_of(PROFILES[profile].rights.system_calls), machine=machine))
    return outcome(program, number, *arguments, arch=AUDIT_ARCH[machine])


@pytest.mark.parametrize("machine", NUMBERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_system_call_that_no_worker_needs_ends_it(profile: str, machine: str) -> None:
    there = [name for name in SHOULD_END.split() if number_of(name, machine) is not None]
    assert {name: judged(profile, name, machine=machine) for name in there} == dict.fromkeys(there, KILL)


@pytest.mark.parametrize("profile", PROFILES)
def test_no_memory_becomes_executable(profile: str) -> None:
    for name in ("mmap", "mprotect"):
        assert judged(profile, name, 0, 4096, 3) == ALLOW
        assert [judged(profile, name, 0, 4096, bits) for bits in (4, 5, 6, 7)] == [KILL] * 4


def test_only_http_workers_open_sockets_and_only_of_the_internet() -> None:
    assert [judged(profile, "socket", 2, 1) for profile in ("compute", "fs")] == [KILL, KILL]
    assert judged("http", "socket", 2, 1 | 0o2000000) == judged("http", "socket", 10, 2) == ALLOW
    refused = refusal(errno.EAFNOSUPPORT)
    assert [judged("http", "socket", family, 1) for family in (1, 16, 17, 38, 40)] == [refused] * 5
    assert judged("http", "socket", 2, 3) == refused  # raw
    assert judged("http", "bind") == refusal(errno.EACCES)


def test_only_fs_workers_open_files_for_writing() -> None:
    assert judged("fs", "openat", 0, 0, os.O_RDWR | os.O_CREAT) == ALLOW
    assert judged("http", "openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_TMPFILE):
        assert judged("http", "openat", 0, 0, flags) == refusal(errno.EACCES)
    assert judged("compute", "openat") == refusal(errno.EACCES)
    assert judged("compute", "unlinkat") == judged("http", "unlinkat") == judged("http", "mkdirat") == KILL


def test_large_processes_may_do_all_but_what_none_of_them_needs() -> None:
    program = decoded(compile_rules(forbidden(), is_list_of_refused=True))
    numbers = {name: number_of(name) for name in ("openat", "execve", "unshare", "ptrace", "clone")}
    outcomes = {name: outcome(program, number) for name, number in numbers.items() if number is not None}
    assert outcomes == {"openat": ALLOW, "execve": KILL, "unshare": KILL, "ptrace": KILL, "clone": KILL}
    clone = numbers["clone"]
    assert clone is not None
    assert outcome(program, clone, 0x3D0F00) == ALLOW  # a thread


# ------------------------------------------------------------------------------------------------ the table


GIVEN = Given(uid=65534, gid=65534)


def kinds_here() -> dict[str, Walls]:
    profiles = {f"worker {name}": profile.walls(GIVEN, "/nowhere") for name, profile in PROFILES.items()}
    return {
        **profiles, "policy": policy.walls(GIVEN), "template": template.walls(GIVEN),
        "compiler": template.compiler_walls("/"),
    }  # fmt: skip


def walls_of(walls: Walls) -> set[str]:
    """The walls that these are, by name."""
    wall_names = set(walls.namespaces) | {names.SECCOMP}
    if not walls.has_files:
        wall_names.add(names.LANDLOCK)
        if not walls.places and names.MOUNT_NAMESPACE in walls.namespaces:
            wall_names.add(names.EMPTY_ROOT)
    if walls.user is not None:
        wall_names.add(names.OWN_USER)
    return wall_names


@pytest.mark.parametrize("kind", kinds_here())
def test_doctor_reports_the_walls_that_a_process_gets(kind: str) -> None:
    assert set(KINDS[kind]) == walls_of(kinds_here()[kind])


def test_every_wall_that_can_be_missing_has_its_mend() -> None:
    assert set(MENDS) == set(names.WALLS)


def test_settings_hold_what_was_found_for_every_child() -> None:
    settings = Settings(state_dir="/s", public_base_url="http://x", walls=GIVEN)
    assert Given.parse(str(settings.walls)) == GIVEN
