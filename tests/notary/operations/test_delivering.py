"""What the notary counts as waiting for an endpoint, without looking: it follows what became of each delivery."""

from ipc.messages import GiveUpDeliveries
from tests.notary.running import Running
from tests.notary.samples import NOW_MS, UNTIL, changed, claim, notify, settled


def waiting(notary: Running) -> dict[str, int]:
    assert notary.thread is not None
    return dict(notary.thread.state.backlog.waiting)


def test_a_delivery_that_is_settled_waits_no_more_and_one_that_comes_again_later_does(telling: Running) -> None:
    front = telling.front
    for _ in range(3):
        notify(front)
    assert waiting(telling) == {"chat": 3, "pager": 3}
    first, second, third = claim(front)
    front.ask(settled(first))
    assert waiting(telling) == {"chat": 2, "pager": 3}
    front.ask(settled(second, due=UNTIL))
    assert waiting(telling) == {"chat": 2, "pager": 3}
    front.ask(settled(third, at=NOW_MS, error="late"))
    assert waiting(telling) == {"chat": 1, "pager": 3}


def test_what_was_settled_already_or_under_another_claim_changes_no_count(telling: Running) -> None:
    notify(telling.front)
    notify(telling.front)
    delivery, other = claim(telling.front)
    telling.front.ask(settled(changed(other, attempt=other.attempt + 1)))
    assert waiting(telling) == {"chat": 2, "pager": 2}
    for _ in range(2):
        telling.front.ask(settled(delivery))
    assert waiting(telling) == {"chat": 1, "pager": 2}


def test_all_that_is_given_up_at_once_waits_no_more(telling: Running) -> None:
    for _ in range(4):
        notify(telling.front)
    assert telling.front.ask(GiveUpDeliveries("pager", NOW_MS, "gone")) == 4
    assert waiting(telling) == {"chat": 4, "pager": 0}
