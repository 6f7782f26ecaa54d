"""The operator's list: filters and pages, and principals in turns, so that a flood hides no other hold."""

from ipc.messages import ListedHolds, ListHolds, ReadStore
from tests.notary.running import Running
from tests.notary.samples import NOW, make_approval, make_claim, make_hold, make_revoke


def fill(notary: Running, principal: str, number: int, since: float = NOW, action_id: str = "text_digest") -> list[str]:
    """Holds a second apart; their ids."""
    kept = [
        make_approval(
            principal=principal, session_id=f"ses_{principal}_{n // 20}", created_at=since + n, action_id=action_id
        )
        for n in range(number)
    ]
    for approval in kept:
        notary.front.ask(make_hold(approval))
    return [approval.approval_id for approval in kept]


def listed(notary: Running, asked: ListHolds) -> list[str]:
    return [one.approval_id for one in page(notary, asked).approvals]


def page(notary: Running, asked: ListHolds) -> ListedHolds:
    holds: ListedHolds = notary.front.ask(asked)
    return holds


def test_a_flood_by_one_principal_hides_no_other_ones_hold(notary: Running) -> None:
    (victim,) = fill(notary, "victim", 1)
    flood = fill(notary, "flood", 90, since=NOW + 1)
    for states in (("pending",), None):
        holds = page(notary, ListHolds(states, 50, in_turns=True))
        assert [one.approval_id for one in holds.approvals] == [*reversed(flood[-49:]), victim]
        assert holds.total == 91
        assert listed(notary, ListHolds(states, 50)) == [*reversed(flood[-50:])], (
            "the newest, unless turns are asked for"
        )


def test_more_principals_than_places_each_show_their_newest_and_the_newest_of_these_come(notary: Running) -> None:
    kept = [fill(notary, f"agent-{n}", 3, since=NOW + 10 * n) for n in range(5)]
    assert listed(notary, ListHolds(("pending",), 3, in_turns=True)) == [kept[n][2] for n in (4, 3, 2)]
    assert listed(notary, ListHolds(("pending",), 7, in_turns=True)) == [
        kept[4][2], kept[4][1], kept[3][2], kept[3][1], kept[2][2], kept[1][2], kept[0][2],
    ]  # fmt: skip


def test_a_list_can_be_of_a_principal_and_of_an_action(notary: Running) -> None:
    fill(notary, "one", 2)
    mails = fill(notary, "one", 2, since=NOW + 5, action_id="mail")
    others = fill(notary, "other", 3, since=NOW + 10, action_id="mail")
    assert listed(notary, ListHolds(None, 9, action_id="mail")) == [*reversed(mails + others)]
    holds = page(notary, ListHolds(("pending", "denied"), 9, principal="one", action_id="mail"))
    assert ([one.approval_id for one in holds.approvals], holds.total) == ([*reversed(mails)], 2)
    assert page(notary, ListHolds(None, 9, principal="nobody")) == ListedHolds([], 0)


def test_pages_before_a_time_go_through_everything_once_and_newest_first(notary: Running) -> None:
    flood = fill(notary, "flood", 7)
    victim = fill(notary, "victim", 2, since=NOW + 2.5)
    at, seen = NOW + 100, []
    while approvals := page(notary, ListHolds(None, 4, before=at)).approvals:
        seen += [one.approval_id for one in approvals]
        at = approvals[-1].created_at
    assert seen == [*reversed([*flood[:3], victim[0], flood[3], victim[1], *flood[4:]])]


def test_pages_lose_none_of_those_that_were_made_a_millisecond_apart(notary: Running) -> None:
    kept = [held_at(notary, NOW + n / 1000) for n in range(3)]
    assert listed(notary, ListHolds(None, 9, before=NOW + 0.002)) == [kept[1], kept[0]]
    assert listed(notary, ListHolds(None, 9, before=NOW + 0.0021)) == [kept[1], kept[0]], "it is shown as the bound"


def held_at(notary: Running, time: float) -> str:
    approval = make_approval(created_at=time)
    notary.front.ask(make_hold(approval))
    return approval.approval_id


def test_a_page_of_several_states_has_the_newest_of_all_of_them(notary: Running) -> None:
    kept = fill(notary, "one", 5)
    for approval_id in (kept[0], kept[3]):
        notary.front.ask(make_claim(make_approval(approval_id=approval_id)))
    for states in (("pending", "claimed"), ("claimed", "pending")):
        assert listed(notary, ListHolds(states, 3, principal="one")) == [kept[n] for n in (4, 3, 2)]


def test_an_ended_hold_is_neither_listed_nor_counted_as_pending(notary: Running) -> None:
    first, second = fill(notary, "agent", 2)
    notary.front.ask(make_claim(make_approval(approval_id=first)))
    assert page(notary, ListHolds(("pending",), 9)).total == notary.front.ask(ReadStore()).pending == 1
    notary.front.ask(make_revoke())
    assert page(notary, ListHolds(("pending",), 9)) == ListedHolds([], 0)
    assert notary.front.ask(ReadStore()).pending == 0
    states = {one.approval_id: one.state for one in page(notary, ListHolds(None, 9)).approvals}
    assert states == {first: "claimed", second: "expired"}
