"""The steps of one unit in Redis and ledger, and how a test ends a notary at each of them.

The names are those of docs/decisions/backends.md, "The order of Redis and ledger".
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Final, NoReturn

import msgspec
import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.operations.calls import Open, ProofRecord
from ipc.operations.holds import Hold
from ipc.operations.leases import ReadBudget
from ipc.operations.operation import Operation
from notary.backends.redis import scripts
from notary.backends.redis.client import Client
from notary.backends.redis.stores import Stores
from notary.database import OpenTransaction
from notary.store.contract import StoreGone
from tests.notary.running import Running
from tests.notary.samples import call_event, make_open

Patch = pytest.MonkeyPatch
GONE = (ChannelClosed, FrameError, OSError)
CALLS = 5
Step = Callable[[Running, Patch], None]


class Killed(BaseException):
    """The notary ends here."""


def stores_of(notary: Running) -> Stores:
    stores = notary.thread.state.stores
    assert stores is not None
    return stores


def budgeted(session_id: str, **given: Any) -> Open:
    return make_open(event=call_event(session_id=session_id), has_budget=True, proof=None, calls_per_hour=9, **given)


def left(notary: Running, session_id: str) -> int:
    return int(notary.front.ask(ReadBudget(session_id)).remaining)


def end_of(notary: Running, asked: Operation[Any]) -> int:
    """Send an operation that ends the notary; return its number."""
    (number,) = notary.front.send(asked)
    with pytest.raises(GONE):
        notary.front.heard(number)
    return number


def ends_at(notary: Running, patches: Patch, step: Step, begin: Callable[[], int]) -> tuple[str, int]:
    """Have the notary end at this step of what `begin` has it do, and start the next one. The front's name, and the
    number that it asked under."""
    front = notary.front
    with patches.context() as patch:
        step(notary, patch)
        number = begin()
        with pytest.raises(GONE):
            front.heard(number)
            front.heard(0)  # it was answered, and ends all the same
    ended(notary)
    return front.front_id, number


def ended(notary: Running) -> None:
    """Start the next notary, with a front of the same name."""
    bury(notary)
    notary.start()


def bury(notary: Running) -> None:
    """Let go of a notary that ended."""
    notary.thread._thread.join(30)
    notary.thread._control.close()
    notary._thread = None


def changed_proof(asked: Hold) -> Hold:
    """Return the same hold with another proof, because the proof of an undone unit stays used."""
    return msgspec.structs.replace(asked, proof=ProofRecord("another-" + asked.approval.approval_id, inf))


def _end(patch: Patch) -> NoReturn:
    """Here, and nowhere in what a thread does for its end."""
    patch.undo()
    raise Killed


def _ending(patch: Patch, after: Callable[..., Any] | None = None) -> Callable[..., Any]:
    def end(*asked: Any) -> NoReturn:
        if after is not None:
            after(*asked)
        _end(patch)

    return end


def begun(notary: Running, patch: Patch) -> None:
    patch.setattr(notary.thread._service._units, "_performed", _ending(patch))


def read(notary: Running, patch: Patch) -> None:
    patch.setattr(notary.thread._service._units, "_remember", _ending(patch))


def written(notary: Running, patch: Patch) -> None:
    patch.setattr(stores_of(notary), "apply", _ending(patch))


def sent(notary: Running, patch: Patch) -> None:
    _after_script(notary, patch, scripts.APPLY)


def applied(notary: Running, patch: Patch) -> None:
    stores = stores_of(notary)
    patch.setattr(stores, "apply", _ending(patch, stores.apply))


def committing(notary: Running, patch: Patch) -> None:
    _at_commit(notary, patch, is_done=False)


def committed(notary: Running, patch: Patch) -> None:
    _at_commit(notary, patch, is_done=True)


def _at_commit(notary: Running, patch: Patch, *, is_done: bool) -> None:
    database, stores = notary.thread.state.database, stores_of(notary)
    unit = database.unit

    @contextmanager
    def ending(**given: bool) -> Iterator[OpenTransaction]:
        with unit(**given) as connection:
            yield connection
            is_ours = stores.owes
            if is_ours and not is_done:
                _end(patch)
        if is_ours:
            _end(patch)

    patch.setattr(database, "unit", ending)


def answered(notary: Running, patch: Patch) -> None:
    _at_tidying(notary, patch, is_done=False)


def tidied(notary: Running, patch: Patch) -> None:
    _at_tidying(notary, patch, is_done=True)


def _at_tidying(notary: Running, patch: Patch, *, is_done: bool) -> None:
    stores = stores_of(notary)
    before = stores._undoable  # an earlier unit may be tidied only now; it does not count

    def ending() -> None:
        is_ours = stores._undoable not in (None, before)
        if is_done or not is_ours:
            Stores.tidy(stores)
        if is_ours:
            _end(patch)

    patch.setattr(stores, "tidy", ending)


def doubted(notary: Running, patch: Patch) -> None:
    """Redis can't be asked any more, and the ledger goes on: the unit that takes the number is the last."""

    def part() -> None:
        for name in ("is_there", "is_taken"):
            patch.setattr(Client, name, property(lambda _: False))

    _lose_answer(notary, patch, part)
    _at_commit(notary, patch, is_done=True)


def recovered(notary: Running, patch: Patch) -> None:
    """Redis has undone the unit, and the notary ends before it takes the answer."""
    _lose_answer(notary, patch, lambda: None)
    _after_script(notary, patch, scripts.RECOVER)


def _after_script(notary: Running, patch: Patch, last: scripts.Script) -> None:
    client = stores_of(notary).client
    run = client.run

    def ending(script: scripts.Script, *asked: Any) -> Any:
        answer = run(script, *asked)
        if script is last:
            _end(patch)
        return answer

    patch.setattr(client, "run", ending)


def _lose_answer(notary: Running, patch: Patch, follow: Callable[[], None]) -> None:
    client = stores_of(notary).client
    run = client.run

    def losing(script: scripts.Script, *asked: Any) -> Any:
        answer = run(script, *asked)
        if script is scripts.APPLY:
            follow()
            raise StoreGone("Redis: no answer in time")
        return answer

    patch.setattr(client, "run", losing)


NOT_DONE: Final = (begun, read, written, sent, applied, committing)
"""The ledger does not have the unit."""
IN_DOUBT: Final = (doubted, recovered)
"""It does not either, and the notary lived for a while."""
DONE: Final = (committed, answered, tidied)
