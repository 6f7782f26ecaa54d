"""Leases of callers whose tokens end."""

import pytest

from ipc.process.clock import iso
from tests.notary.running import Running
from tests.notary.samples import NOW as CLOCK
from tests.notary.samples import make_issue
from tests.support.asking import Told

NOW = int(CLOCK)


@pytest.mark.parametrize(("ends_at", "lives"), [(NOW + 40, 40), (NOW + 300, 300), (NOW + 9000, 300), (None, 300)])
def test_a_lease_ends_with_its_callers_token_or_before(notary: Running, ends_at: int | None, lives: int) -> None:
    assert notary.front.ask(make_issue(ends_at=ends_at)).expires_at == iso(NOW + lives)


def test_a_token_that_has_ended_gives_no_lease(notary: Running) -> None:
    with pytest.raises(Told, match="the token of the caller has ended"):
        notary.front.ask(make_issue(ends_at=NOW))
    assert notary.events() == []


def test_a_session_is_not_continued_by_a_lease_that_ends_before_its_last(notary: Running) -> None:
    first = notary.front.ask(make_issue(jkt="jkt_1"))
    shorter = notary.front.ask(make_issue(jkt="jkt_1", ends_at=NOW + 40))
    assert shorter.session_id != first.session_id
