"""Classic BPF programs for seccomp(2): assembled from rules a system call, as a search tree of a few comparisons.

Pure: bytes and numbers, nothing is asked of the kernel. A call of another architecture or of the x32 kind ends the
process, one that no rule names gets the action of the default. An own assembler, since all we need are six instructions
and the order of a tree; a library would be native code that is loaded where walls are built.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

KILL: Final = 0x80000000
"""SECCOMP_RET_KILL_PROCESS."""
ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_MASK: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_ALWAYS: Final = 0x05  # BPF_JMP | BPF_JA
_RETURN: Final = 0x06  # BPF_RET | BPF_K
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
_X32_BIT: Final = 0x40000000
_NO_CALL: Final = 0xFFFFFFFF
"""A tracer that skips a call sets this number: the call has no effect, and is treated as one that is not listed."""
MAX_INSTRUCTIONS: Final = 4096
_MAX_JUMP: Final = 255
_LEAVES: Final = 4
"""Calls that are compared one after the other at the end of a branch."""

Instruction = tuple[int, int, int, int]
"""(code, jump if true, jump if false, value), as struct sock_filter has it."""


def errno(number: int) -> int:
    """The action that refuses a call with this error number and lets the process live."""
    return _ERRNO | (number & 0xFFFF)


class Bits(msgspec.Struct, frozen=True):
    """Holds if none of these bits is set in the lower half of an argument (the kernel looks at no others there)."""

    argument: int
    none_of: int


class OneOf(msgspec.Struct, frozen=True):
    """Holds if the lower half of an argument, under a mask, is one of these values."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


Condition = Bits | OneOf


class SyscallRule(msgspec.Struct, frozen=True):
    """The rule for a call: `action` if all conditions hold, else `otherwise`."""

    action: int = ALLOW
    conditions: tuple[Condition, ...] = ()
    otherwise: int = KILL


def assemble(rules: Mapping[int, SyscallRule], arch: int, default: int, *, has_x32: bool) -> list[Instruction]:
    """The program. `rules` by the number of the call. Raises ValueError for one that the kernel would not take."""
    program: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), _returns(KILL), (_LOAD, 0, 0, _NR)]
    if has_x32:
        program += [(_EQUAL, 2, 0, _NO_CALL), (_AT_LEAST, 0, 1, _X32_BIT), _returns(KILL)]
    program += _tree(sorted(rules.items()), default)
    if len(program) > MAX_INSTRUCTIONS:
        raise ValueError(f"a filter of {len(program)} instructions")
    return program


def encode(program: Sequence[Instruction]) -> bytes:
    """An array of struct sock_filter."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _returns(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)


def _tree(rules: Sequence[tuple[int, SyscallRule]], default: int) -> list[Instruction]:
    if len(rules) <= _LEAVES:
        return [*(step for number, rule in rules for step in _leaf(number, rule)), _returns(default)]
    middle = len(rules) // 2
    lower, upper = _tree(rules[:middle], default), _tree(rules[middle:], default)
    pivot = rules[middle][0]
    if len(lower) <= _MAX_JUMP:
        return [(_AT_LEAST, len(lower), 0, pivot), *lower, *upper]
    return [(_AT_LEAST, 0, 1, pivot), (_ALWAYS, 0, 0, len(lower)), *lower, *upper]


def _leaf(number: int, rule: SyscallRule) -> list[Instruction]:
    body = [*(step for one in rule.conditions for step in _condition(one, rule.otherwise)), _returns(rule.action)]
    return [(_EQUAL, 0, len(body), number), *body]


def _condition(condition: Condition, otherwise: int) -> Iterator[Instruction]:
    """Steps that fall through if the condition holds, and end with `otherwise` if not. The program never looks at the
    number of the call again after these."""
    yield (_LOAD, 0, 0, _ARGUMENTS + 8 * condition.argument)
    if isinstance(condition, Bits):
        yield (_ANY_BIT, 0, 1, condition.none_of)
        yield _returns(otherwise)
        return
    if condition.mask != 0xFFFFFFFF:
        yield (_MASK, 0, 0, condition.mask)
    last = len(condition.values)
    for position, value in enumerate(condition.values):
        yield (_EQUAL, last - position, 0, value)
    yield _returns(otherwise)
