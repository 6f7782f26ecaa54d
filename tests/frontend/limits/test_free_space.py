"""The gate of free space: what begins, and what is said when that changes."""

import pytest

from frontend.errors import GateError
from frontend.limits.admission import Admission
from frontend.limits.free_space import FreeSpace


def test_calls_and_leases_begin_while_enough_is_free() -> None:
    reasons: list[str] = []
    admission, was_refused = Admission(5, reasons.append, room=FreeSpace(100)), False
    assert admission.room.least == 100
    for free, is_refused in ((100, False), (99, True), (0, True), (100, False), (None, False)):
        assert admission.room.heard(free) is (is_refused != was_refused)
        was_refused = is_refused
        if not is_refused:
            admission.refuse_new_leases()
            with admission.enter():
                pass
            continue
        for ask in (admission.refuse_new_leases, admission.enter, lambda: admission.enter(while_draining=True)):
            with pytest.raises(GateError, match="ledger_full") as refused:
                ask()
            assert (refused.value.status, refused.value.retry_after) == (503, 5)
        assert admission.in_flight == 0
    assert set(reasons) == {"ledger_full"}, "docs/metrics.md, gate_calls_refused_total"


def test_without_a_bound_a_full_volume_refuses_nothing_by_itself() -> None:
    room = FreeSpace(0)
    room.heard(0)
    room.refuse_when_short()
    assert not room.is_short
    admission = Admission(5)
    admission.room.heard(0)
    admission.refuse_new_leases()
    with admission.enter():
        pass
