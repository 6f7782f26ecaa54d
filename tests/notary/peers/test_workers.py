"""The notary's end of a worker's channel: which words are given, taken back and repeated, and what is believed."""

import os
import socket
from collections.abc import Iterator

import pytest

from ipc.expected import FileToLeave
from ipc.limits import MAX_AHEAD
from ipc.messages import attesting
from ipc.messages.attesting import LookAtFile, NoPermit, Permit, Seen, WorkerToNotary
from ipc.messages.calling import Result
from notary.peers.workers import WorkerFault, WorkerLink
from tests.notary.samples import DIGEST, make_result
from tests.support.played_workers import PlayedWorker

FILE = FileToLeave("/var/lib/files", "notes/a", DIGEST, 5)


class Tied:
    """A worker that is tied to one notary after the other."""

    def __init__(self) -> None:
        self.worker = PlayedWorker("front-1")
        self.channels: list[WorkerLink] = []

    def tie(self) -> WorkerLink:
        ends = [socket.socket(fileno=os.dup(end.fileno())) for end in (self.worker.notarys, self.worker.own)]
        self.channels.append(WorkerLink(self.worker.worker_id, "front-1", *ends))
        return self.channels[-1]

    def heard(self) -> list[object]:
        """Return the messages that the worker receives now."""
        messages: list[object] = []
        while self.worker.has_news():
            messages.append(self.worker.hear())
        return [message for message in messages if not isinstance(message, attesting.Tied)]

    def words(self) -> list[str]:
        return [message.call_id for message in self.heard() if isinstance(message, Permit)]

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        self.worker.close()


@pytest.fixture
def tied() -> Iterator[Tied]:
    made = Tied()
    yield made
    made.close()


@pytest.fixture
def channel(tied: Tied) -> WorkerLink:
    return tied.tie()


def give(channel: WorkerLink, *names: str, is_repeated: bool = False) -> None:
    more = {"is_repeated": True} if is_repeated else {}
    for name in names:
        assert channel.give_word(name, DIGEST, is_approved=False, **more) is None


def result(name: str) -> Result:
    return make_result(call_id=name)


def taken(channel: WorkerLink) -> list[WorkerToNotary]:
    return channel.results(to_the_end=False)


def test_a_result_before_the_repeated_permit_counts_and_the_permit_is_not_sent(tied: Tied, channel: WorkerLink) -> None:
    tied.worker.tell(result("a"))
    (told,) = taken(channel)
    assert isinstance(told, Result)
    assert not channel.accepts(told)
    late = channel.give_word("a", DIGEST, is_approved=False, is_repeated=True)
    assert (late, tied.heard()) == (result("a"), [])
    assert not channel.accepts(told), "it repeats it"
    channel.finish("a")
    assert not channel.accepts(told)
    give(channel, "b")
    (word,) = tied.heard()
    assert word == Permit("b", DIGEST, False, ("a",))


def test_an_early_result_without_a_repeated_permit_is_kept_once(channel: WorkerLink) -> None:
    assert not channel.accepts(result("a"))
    assert (channel.late_result("a"), channel.late_result("a")) == (result("a"), None)


def test_a_worker_is_believed_once_of_each_call_that_it_has_the_word_for(channel: WorkerLink) -> None:
    give(channel, "a", "b")
    assert channel.accepts(result("b"))
    assert not channel.accepts(result("b")), "repeated, as its word may have been"
    assert channel.accepts(result("a"))
    with pytest.raises(WorkerFault, match="no word for"):
        channel.accepts(result("c"))


def test_before_its_first_word_a_worker_tells_of_as_many_calls_as_it_may_hold_and_of_each_once(
    channel: WorkerLink,
) -> None:
    for number in range(MAX_AHEAD):
        assert not channel.accepts(result(f"call-{number}"))
    for name in ("call-0", "one-more"):
        with pytest.raises(WorkerFault, match="no word for"):
            channel.accepts(result(name))


def test_nothing_beyond_the_result_of_its_one_call_is_taken_from_a_worker(tied: Tied, channel: WorkerLink) -> None:
    give(channel, "a", "b", "c")
    for name in ("a", "a", "b", "c", "c"):
        tied.worker.tell(result(name))
    assert len(taken(channel)) == 5
    for name in ("a", "b"):
        channel.finish(name)
    for _ in range(2):
        tied.worker.tell(result("c"))
    assert (len(taken(channel)), len(taken(channel)), len(taken(channel))) == (1, 1, 0)
    give(channel, "d")
    for _ in range(2):
        tied.worker.tell(result("c"))
    assert len(taken(channel)) == 2
    for _ in range(2):
        tied.worker.tell(result("c"))
    channel.finish("d")
    assert len(channel.results(to_the_end=True)) == 2


def test_words_that_were_not_taken_are_taken_back_and_all_else_is_said_again_in_order(
    tied: Tied, channel: WorkerLink
) -> None:
    give(channel, "settled")
    assert tied.words() == ["settled"]
    channel.finish("settled")
    give(channel, "a", "b")
    channel.tell(NoPermit("n"))
    give(channel, "c")
    assert channel.take_back("a") == ["a"]
    assert channel.take_back("unknown") == []
    assert list(channel.calls) == ["b", "c"]
    said = tied.heard()
    assert said == [Permit("b", DIGEST, False, ()), NoPermit("n"), Permit("c", DIGEST, False, ())]
    assert (channel.take_back(), channel.take_back("b"), tied.heard()) == ([], [], [])
    give(channel, "d")
    assert tied.heard() == [Permit("d", DIGEST, False, ("settled",))], "what the word said that was taken back"
    give(channel, "e", "f")
    assert (channel.take_back(), tied.heard(), list(channel.calls)) == (["e", "f"], [], ["b", "c", "d"])


def test_a_word_of_a_call_that_has_ended_meanwhile_is_neither_taken_back_nor_said_again(
    tied: Tied, channel: WorkerLink
) -> None:
    give(channel, "a", "b")
    channel.finish("a")
    assert (channel.take_back(), tied.heard()) == (["b"], [])


def test_a_word_that_the_notary_before_may_have_given_is_never_taken_back(tied: Tied) -> None:
    before = tied.tie()
    give(before, "taken", "untaken")
    assert tied.worker.word().call_id == "taken"
    before.tell(NoPermit("n"))
    channel = tied.tie()
    assert tied.heard() == [NoPermit("n")], "whoever waits for a plan hears that it is refused"
    give(channel, "taken", "untaken", is_repeated=True)
    give(channel, "fresh")
    assert channel.take_back() == ["untaken", "fresh"], "the worker has not taken them, and never will"
    assert tied.words() == ["taken"]
    channel.finish("taken")
    give(channel, "taken")
    assert channel.take_back() == ["taken"]


def seen(number: int, state: str = "matches", sha256: str | None = DIGEST) -> Seen:
    return Seen(number, state, sha256)


def test_a_worker_is_believed_of_what_it_was_asked_to_look_at_and_of_one_look_that_the_notary_before_asked_for(
    tied: Tied, channel: WorkerLink
) -> None:
    for number in (1, 2):
        channel.look(number, "fs_hash", FILE, 3.0)
    assert tied.heard() == [LookAtFile(1, "fs_hash", FILE, 3.0), LookAtFile(2, "fs_hash", FILE, 3.0)]
    assert channel.accepts_look(seen(1))
    assert channel.accepts_look(seen(2, sha256=None))
    assert channel.looks == set()
    assert not channel.accepts_look(seen(3))
    with pytest.raises(WorkerFault, match="a look that cannot be"):
        channel.accepts_look(seen(4))
    channel.look(5, "fs_hash", FILE, 3.0)
    assert channel.accepts_look(seen(5))


@pytest.mark.parametrize("told", [seen(1, "no state"), seen(1, sha256=DIGEST[:-1]), seen(1, sha256=f"{DIGEST}0")])
def test_a_look_that_cannot_be_is_no_look(channel: WorkerLink, told: Seen) -> None:
    channel.look(1, "fs_hash", FILE, 3.0)
    with pytest.raises(WorkerFault, match="a look that cannot be"):
        channel.accepts_look(told)
    assert channel.looks == {1}
