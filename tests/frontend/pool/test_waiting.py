"""Calls that wait for a worker: which of them are looked at when one comes free."""

import random

from frontend.pool.order import ServiceOrder
from frontend.pool.waiting import WaitingCall, WaitingCalls, Want


def of_session(principal: str, session: int, action: str = "post") -> Want:
    return Want((principal, f"session {session}"), action=action, is_shared=True)


def test_one_call_of_each_kind_is_looked_at_however_many_sessions_wait() -> None:
    waiting = WaitingCalls(ServiceOrder())
    for number in range(500):
        for principal, action in (("ann", "post"), ("ann", "get"), ("bob", "post")):
            waiting.add(WaitingCall(of_session(principal, number, action)))
    looked_at = [(one.want.principal, one.want.action) for one in waiting.in_turn()]
    assert sorted(looked_at) == [("ann", "get"), ("ann", "post"), ("bob", "post")]
    assert sorted(waiting.kinds()) == [(of_session(name, 0, action).kind, 500) for name, action in sorted(looked_at)]


def test_the_next_call_of_a_kind_is_of_the_session_that_was_served_longest_ago() -> None:
    chance, order = random.Random(3), ServiceOrder()
    waiting, left = WaitingCalls(order), list[WaitingCall]()
    for number in range(300):
        if number % 3 < 2:
            one = WaitingCall(of_session(f"principal {chance.randrange(3)}", chance.randrange(20)))
            order.begin(one.want.owners)
            waiting.add(one)
            left.append(one)
        in_turn = sorted(left, key=lambda one: (order.last(one.want.owners), one.number))
        assert waiting.in_turn()[0] is in_turn[0]
        if number % 3 == 2:
            waiting.remove(in_turn[0])
            left.remove(in_turn[0])
            order.serve(in_turn[0].want.owners)
        assert len(waiting) == len(left) == sum(count for _, count in waiting.kinds())
    for one in left:
        waiting.remove(one)
    assert (len(waiting), list(waiting.kinds()), waiting.in_turn()) == (0, [], [])
