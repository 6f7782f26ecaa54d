"""The table of system calls, held against libseccomp where that is installed."""

import ctypes
import ctypes.util
import os

import pytest

from ipc.walls.syscalls import AUDIT_ARCH, NUMBERS, call, number_of


@pytest.mark.parametrize("machine", NUMBERS)
def test_numbers_are_those_of_libseccomp(machine: str) -> None:
    name = ctypes.util.find_library("seccomp")
    if name is None:
        pytest.skip("libseccomp is not installed")
    resolve = ctypes.CDLL(name).seccomp_syscall_resolve_name_arch
    resolve.argtypes = (ctypes.c_uint32, ctypes.c_char_p)
    theirs = {one: resolve(AUDIT_ARCH[machine], one.encode()) for one in NUMBERS[machine]}
    # A library that is older than a call does not know it (-1); below that are names without a number here.
    assert {one: number for one, number in theirs.items() if number >= 0} == {
        one: number for one, number in NUMBERS[machine].items() if theirs[one] >= 0
    }
    assert not [one for one, number in NUMBERS[machine].items() if number is None and theirs[one] >= 0]


def test_a_name_that_is_no_call_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        number_of("opne")


def test_a_call_is_made_and_its_failure_told() -> None:
    assert call("getpid") == os.getpid()
    with pytest.raises(OSError, match="capget") as told:
        call("capget", None, None)
    assert told.value.errno in (14, 22)
