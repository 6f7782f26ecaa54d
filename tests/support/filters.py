"""A machine that runs compiled filters of system calls, as the kernel would."""

import struct

from ipc.walls.bpf import Instruction
from ipc.walls.syscalls import AUDIT_ARCH, MACHINE


def outcome(program: list[Instruction], number: int, *arguments: int, arch: int = AUDIT_ARCH[MACHINE]) -> int:
    """Return the kernel's verdict on this call (an interpreter of the filter's instructions)."""
    filled = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number, arch, 0, *filled)
    accumulator = position = 0
    while True:
        code, if_true, if_false, value = program[position]
        position += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x05:
                position += value
            case 0x06:
                return value
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
                position += if_true if holds else if_false
            case _:
                raise AssertionError(f"no such instruction {code:#x}")


def decoded(program: bytes) -> list[Instruction]:
    """The instructions of a compiled filter."""
    return list(struct.iter_unpack("=HBBI", program))
