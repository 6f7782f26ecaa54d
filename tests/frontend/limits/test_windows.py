"""Windows of what happens again and again: opened at first, counted, told when they are over, forgotten when quiet."""

import trio
import trio.testing

from frontend.limits.windows import MAX_KEYS, Window, Windows

SECONDS = 60.0


def made(max_keys: int = MAX_KEYS) -> Windows[str, Window]:
    return Windows(Window, lambda _key: "others", SECONDS, max_keys)


async def test_the_first_of_a_key_opens_its_window_and_those_after_it_share_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    windows = made()
    key, window, is_first = windows.of("a")
    assert (key, window.count, window.until - trio.current_time(), is_first) == ("a", 0, SECONDS, True)
    assert windows.of("a") == ("a", window, False)
    assert windows.of("a")[1] is window
    assert windows.of("b")[2]
    assert len(windows) == 2


async def test_beyond_so_many_keys_all_that_are_new_are_one(autojump_clock: trio.testing.MockClock) -> None:
    windows = made(2)
    assert [windows.of(key)[0] for key in "abcda"] == ["a", "b", "others", "others", "a"]
    assert windows.of("e")[1] is windows.of("f")[1]
    assert len(windows) == 3
    windows = made()
    for number in range(256):  # docs/decisions/evidence.md, "Audit, receipts, intents"
        assert windows.of(str(number))[0] == str(number)
    assert windows.of("one more")[0] == "others"


async def test_a_window_with_something_counted_is_due_at_its_end_and_begins_anew(
    autojump_clock: trio.testing.MockClock,
) -> None:
    windows = made()
    _, window, _ = windows.of("a")
    window.count = 3
    assert windows.due(window.until - 0.001) == []
    await trio.sleep(SECONDS)
    assert windows.due(trio.current_time()) == [("a", window)]
    assert window.until - trio.current_time() == SECONDS
    assert windows.of("a")[1:] == (window, False)


async def test_a_key_that_stayed_quiet_for_a_window_is_forgotten_and_another_may_have_its_place(
    autojump_clock: trio.testing.MockClock,
) -> None:
    windows = made(1)
    windows.of("a")
    assert windows.due(trio.current_time() + SECONDS - 0.001) == []
    assert windows.of("b")[0] == "others"
    assert windows.due(trio.current_time() + SECONDS) == []
    assert len(windows) == 0
    assert windows.of("b")[0] == "b"
