"""A standing approval of two notaries that share a real PostgreSQL and a real Redis."""

from typing import Any

import pytest

from ipc.operations.calls import Closed, HeldByCap
from tests.notary.backends.postgres.conftest import StartNotary
from tests.notary.operations.test_standing import OPERATORS, add, calls, opening
from tests.notary.running import Running
from tests.notary.samples import make_revoke

pytestmark = [pytest.mark.large, pytest.mark.usefixtures("patient_backends")]


def test_what_one_adds_both_count_and_either_ends(start: StartNotary) -> None:
    one, other = start("one", operators=OPERATORS), start("other", operators=OPERATORS)
    standing_id = add(one, max_calls=3)
    asked: list[tuple[Running, Any]] = [(host, host.front.send(opening(standing_id))[0]) for host in (one, other) * 3]
    ends = [type(host.front.answer(number)) for host, number in asked]
    assert (ends.count(Closed), ends.count(HeldByCap)) == (3, 3)
    assert calls(one) == calls(other) == [3]
    other.front.ask(make_revoke())
    assert calls(other) == []
