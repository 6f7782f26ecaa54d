"""The caps of a policy's data, page by page."""

from frontend.policy.cap_pages import PAGE, page_of
from frontend.policy.value_rules import Cap

CAPS = {
    name: tuple(Cap("/amount", "all", seconds, 1) for seconds in range(1, 1 + count))
    for name, count in {"d": 1, "b": 2, "c": PAGE, "a": PAGE - 2}.items()
}


def test_pages_have_all_caps_of_each_of_their_actions_and_together_every_one_once() -> None:
    seen: list[tuple[str, Cap]] = []
    ends: list[str | None] = []
    after: str | None = None
    while True:
        page = page_of(CAPS, None, after)
        assert len(page.caps) <= PAGE
        seen += page.caps
        ends.append(after := page.next)
        if after is None:
            break
    assert ends == ["b", "c", None]
    assert seen == [(name, cap) for name in sorted(CAPS) for cap in CAPS[name]]


def test_one_action_s_caps_are_a_page_of_their_own() -> None:
    assert page_of(CAPS, "c", None).caps == tuple(("c", cap) for cap in CAPS["c"])
    assert page_of(CAPS, "c", None).next is None
    assert page_of(CAPS, "x", None).caps == ()
