"""Filters of system calls: compiled from rules by name, and put on every thread of this process for good.

SECURITY: a list of what is allowed ends the process (SIGSYS) at anything else; a list of what is refused is for
processes that are too large to be listed. A filter can't be taken off, and holds for all children.
"""

import ctypes
from collections.abc import Mapping
from typing import Final

from ipc.walls.bpf import ALLOW, KILL, SyscallRule, assemble, encode
from ipc.walls.syscalls import AUDIT_ARCH, MACHINE, call, number_of

_SET_MODE_FILTER: Final = 1
_FLAG_TSYNC: Final = 1
_GET_ACTION_AVAIL: Final = 2

Rules = Mapping[str, SyscallRule]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def compile_rules(rules: Rules, *, is_list_of_refused: bool = False, machine: str = MACHINE) -> bytes:
    """The program for these rules on this architecture; calls that it does not have are left out.

    Raises KeyError for a name that is no call, ValueError for rules that make no program.
    """
    numbered = {number: rule for name, rule in rules.items() if (number := number_of(name, machine)) is not None}
    default = ALLOW if is_list_of_refused else KILL
    return encode(assemble(numbered, AUDIT_ARCH[machine], default, has_x32=machine == "x86_64"))


def has_kill_process() -> bool:
    """Whether this kernel has filters, and the action that ends a whole process. Raises nothing."""
    try:
        call("seccomp", _GET_ACTION_AVAIL, 0, ctypes.byref(ctypes.c_uint32(KILL)))
    except (OSError, KeyError):
        return False
    return True


def install(program: bytes) -> None:
    """Put the filter on all threads of this process, which must have given up new privileges. Raises OSError."""
    buffer = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    # With TSYNC a thread that can't take the filter is named by its id, which is no error number.
    if call("seccomp", _SET_MODE_FILTER, _FLAG_TSYNC, ctypes.byref(described)) != 0:
        raise OSError(3, "seccomp: a thread of this process could not take the filter")
