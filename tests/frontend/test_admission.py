"""Admission: what is refused before anything is spent on it."""

import pytest
import trio
import trio.testing

from frontend.admission import Admission
from frontend.errors import GateError


def code_of(admission: Admission, *, while_draining: bool = False) -> str:
    with pytest.raises(GateError) as refused, admission.enter(while_draining=while_draining):
        pass
    return refused.value.code


def test_a_place_is_given_back_whatever_happens() -> None:
    admission = Admission(1)
    with pytest.raises(ZeroDivisionError), admission.enter():
        assert admission.in_flight == 1
        raise ZeroDivisionError
    assert admission.in_flight == 0
    with admission.enter():
        pass


def test_one_call_too_many_is_overloaded() -> None:
    admission = Admission(2)
    with admission.enter(), admission.enter():
        assert code_of(admission) == "overloaded"
    with admission.enter():
        pass


def test_draining_refuses_agents_and_not_operators() -> None:
    admission = Admission(2)
    assert admission.drain() is False
    assert admission.drain() is True
    assert code_of(admission) == "draining"
    with admission.enter(while_draining=True):
        assert admission.in_flight == 1


async def test_idle_comes_when_the_last_call_has_left() -> None:
    admission = Admission(5)
    left: list[str] = []

    async def wait() -> None:
        await admission.wait_idle()
        left.append("idle")

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            with admission.enter():
                with admission.enter():
                    nursery.start_soon(wait)
                    await trio.testing.wait_all_tasks_blocked()
                await trio.testing.wait_all_tasks_blocked()
                assert left == []
        assert left == ["idle"]
        await admission.wait_idle()
