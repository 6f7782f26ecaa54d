"""Filters as they are assembled, run by a machine of our own: what each call gets, without a kernel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.walls.bpf import ALLOW, KILL, Bits, Instruction, OneOf, SyscallRule, assemble, errno
from ipc.walls.syscalls import AUDIT_ARCH
from tests.support.filters import outcome

X86 = AUDIT_ARCH["x86_64"]
RULES = {
    0: SyscallRule(),
    1: SyscallRule(conditions=(Bits(2, 4),)),
    9: SyscallRule(conditions=(OneOf(0, (2, 10)), OneOf(1, (1, 2), 0xF)), otherwise=errno(97)),
    40: SyscallRule(action=errno(13)),
    300: SyscallRule(action=KILL),
}


def judged(program: list[Instruction], number: int, *arguments: int, arch: int = X86) -> int:
    """Return the verdict of an x86_64 filter on a system call."""
    return outcome(program, number, *arguments, arch=arch)


@pytest.fixture(scope="module")
def program() -> list[Instruction]:
    return assemble(RULES, X86, KILL, has_x32=True)


def test_a_call_gets_what_its_rule_says_and_any_other_ends_the_process(program: list[Instruction]) -> None:
    assert [judged(program, number) for number in (0, 1, 40, 300)] == [ALLOW, ALLOW, errno(13), KILL]
    assert {judged(program, number) for number in range(500)} - {ALLOW, KILL, errno(13), errno(97)} == set()
    assert [number for number in range(500) if judged(program, number) == ALLOW] == [0, 1]


def test_an_argument_is_held_against_its_conditions(program: list[Instruction]) -> None:
    assert judged(program, 1, 0, 0, 3) == ALLOW
    assert judged(program, 1, 0, 0, 7) == KILL
    assert judged(program, 9, 10, 1 | 0o2000000) == ALLOW
    assert judged(program, 9, 2, 3) == judged(program, 9, 1, 1) == errno(97)


def test_another_architecture_and_x32_end_the_process(program: list[Instruction]) -> None:
    assert judged(program, 0, arch=0x40000003) == KILL
    assert judged(program, 0x40000000) == KILL
    unlisted = assemble({5: SyscallRule(action=KILL)}, X86, ALLOW, has_x32=True)
    assert judged(unlisted, 0x40000001) == judged(unlisted, 5) == KILL
    assert judged(unlisted, 6) == ALLOW


@given(
    st.dictionaries(
        st.integers(0, 1000), st.sampled_from([SyscallRule(), SyscallRule(action=errno(1)), RULES[9]]), max_size=300
    )
)
def test_however_many_rules_there_are_each_call_meets_its_own(rules: dict[int, SyscallRule]) -> None:
    made = assemble(rules, X86, KILL, has_x32=False)
    for number in {*rules, 0, 500, 1000}:
        rule = rules.get(number, SyscallRule(action=KILL))
        wanted = rule.otherwise if rule.conditions else rule.action  # arguments of 0 satisfy none of the conditions
        assert judged(made, number) == wanted


def test_a_program_that_no_kernel_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="instructions"):
        assemble(dict.fromkeys(range(900), RULES[9]), X86, KILL, has_x32=False)
