"""Admission: what is refused before anything is spent on it."""

import time
from contextlib import ExitStack

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.limits.admission import Admission


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


def test_a_closed_door_refuses_operators_too_and_says_why() -> None:
    reasons: list[str] = []
    admission = Admission(2, reasons.append)
    admission.refuse_new_leases()
    admission.close()
    assert code_of(admission, while_draining=True) == code_of(admission) == "draining"
    assert reasons == ["draining", "draining"]
    assert admission.in_flight == 0
    with pytest.raises(GateError) as refused:
        admission.refuse_new_leases()
    assert refused.value.code == "draining"


def test_the_place_of_a_call_without_an_owner_is_given_back_before_its_refusal_is_written_and_only_once() -> None:
    admission = Admission(3)
    with admission.enter() as stranger, admission.enter() as owned:
        owned.belongs_to("p", "s")
        owned.leave_unless_owned()
        assert admission.in_flight == 2
        stranger.leave_unless_owned()
        assert admission.in_flight == 1
    assert admission.in_flight == 0


def test_the_oldest_call_in_flight_tells_for_how_long_it_has_been() -> None:
    admission = Admission(3)
    assert admission.oldest_seconds() == 0.0
    oldest, newer = admission.enter(), admission.enter()
    oldest.since -= 60
    newer.since -= 30
    began = time.monotonic()
    of_the_oldest = admission.oldest_seconds()
    assert of_the_oldest >= 60
    admission.release(oldest)
    assert 30 <= admission.oldest_seconds() <= of_the_oldest - 30 + time.monotonic() - began
    admission.release(newer)
    assert admission.oldest_seconds() == 0.0


async def test_who_waits_for_a_single_call_waits_and_does_not_spin() -> None:
    admission = Admission(5)
    with trio.fail_after(60):
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                with admission.enter():
                    nursery.start_soon(admission.wait_idle)
                    await trio.testing.wait_all_tasks_blocked()


async def test_idle_comes_when_the_last_call_has_left() -> None:
    admission = Admission(5)
    left: list[str] = []

    async def wait() -> None:
        await admission.wait_idle()
        left.append("idle")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            with admission.enter():
                with admission.enter():
                    nursery.start_soon(wait)
                    await trio.testing.wait_all_tasks_blocked()
                await trio.testing.wait_all_tasks_blocked()
                assert left == []
        assert left == ["idle"]
        await admission.wait_idle()


# ------------------------------------------------------------------ shares


class Crowd:
    """Callers that hold places until the test releases them."""

    def __init__(self, ceiling: int) -> None:
        self.refused: list[str] = []
        self.admission = Admission(ceiling, self.refused.append)
        self.held: dict[tuple[str, str], list[ExitStack]] = {}

    def call(self, principal: str, session: str) -> bool:
        with ExitStack() as stack:
            try:
                stack.enter_context(self.admission.enter()).belongs_to(principal, session)
            except GateError as error:
                if error.code != "overloaded":
                    raise
                return False
            self.held.setdefault((principal, session), []).append(stack.pop_all())
            return True

    def flood(self, principal: str, *sessions: str) -> int:
        count, left = 0, list(sessions)
        while left:
            left = [session for session in left if self.call(principal, session)]
            count += len(left)
        return count

    def leave(self) -> None:
        for stacks in self.held.values():
            for stack in stacks:
                stack.close()


@pytest.mark.parametrize(
    ("ceiling", "alone", "many"), [(256, 171, 192), (64, 43, 48), (8, 6, 6), (4, 3, 3), (3, 2, 3), (2, 2, 2), (1, 1, 1)]
)
def test_one_caller_alone_has_most_places_and_not_all(ceiling: int, alone: int, many: int) -> None:
    crowd = Crowd(ceiling)
    assert crowd.flood("p", "s") == alone
    crowd = Crowd(ceiling)
    assert crowd.flood("p", *(f"s-{number}" for number in range(ceiling))) == many
    assert crowd.refused[-1] == ("share" if many < ceiling else "ceiling")


@given(floods=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), max_size=20), ceiling=st.integers(168, 300))
def test_whoever_comes_new_finds_a_place_however_many_hold_all_they_may(floods: list[list[int]], ceiling: int) -> None:
    crowd = Crowd(ceiling)
    for number, sessions in enumerate(floods):
        crowd.flood(f"principal {number}", *(f"session {number}-{session}" for session in sessions))
    assert crowd.call("newcomer", "its session")
    crowd.leave()
    assert crowd.admission.in_flight == 0
    assert not crowd.admission._held, "nothing is remembered of those who left"
    assert crowd.flood("principal 0", "session 0") > ceiling / 2


def test_a_flood_of_one_session_leaves_room_for_the_others_of_its_principal() -> None:
    crowd = Crowd(64)
    crowd.flood("p", "flood")
    assert crowd.call("p", "other")
    assert crowd.flood("p", "other") >= 4


def test_many_callers_have_fair_parts() -> None:
    crowd = Crowd(256)
    principals = [f"p-{number}" for number in range(8)]
    for _ in range(256):
        for principal in principals:
            crowd.call(principal, f"of {principal}")
    held = [len(crowd.held[principal, f"of {principal}"]) for principal in principals]
    assert max(held) - min(held) <= 1
    assert min(held) >= 256 // 10


def test_operators_need_no_share_and_a_call_that_nobody_has_claimed_holds_none() -> None:
    admission = Admission(8)
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(admission.enter(while_draining=True))
        assert admission.in_flight == 8
        assert not admission._held
