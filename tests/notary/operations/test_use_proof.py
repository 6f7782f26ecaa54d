"""UseProof: a proof is used once, and every visit tells the epoch."""

from ipc.operations.calls import Entered, ProofRecord, UseProof
from notary.store.proofs import REPLAY_SECONDS
from tests.notary.running import Running
from tests.notary.samples import make_revoke


def test_a_proof_is_fresh_once_and_another_one_is_another(notary: Running) -> None:
    front = notary.front
    assert front.ask(UseProof(ProofRecord("p"))) == Entered(is_fresh=True, epoch=0)
    assert front.ask(UseProof(ProofRecord("p"))) == Entered(is_fresh=False, epoch=0)
    assert front.ask(UseProof(ProofRecord("q"))).is_fresh


def test_a_proof_is_known_for_as_long_as_it_could_be_shown_again_and_not_longer(notary: Running) -> None:
    front, began = notary.front, notary.clock.time
    assert front.ask(UseProof(ProofRecord("p"))).is_fresh
    for later in (1, 30, 59, 61, 119, 121, REPLAY_SECONDS - 0.001):
        notary.clock.time = began + later
        assert not front.ask(UseProof(ProofRecord("p"))).is_fresh, later
    notary.clock.time = began + REPLAY_SECONDS
    assert front.ask(UseProof(ProofRecord("p"))).is_fresh
    assert not front.ask(UseProof(ProofRecord("p"))).is_fresh


def test_a_proof_stays_used_for_the_notary_that_follows(notary: Running) -> None:
    notary.front.ask(UseProof(ProofRecord("p")))
    assert not notary.restart().ask(UseProof(ProofRecord("p"))).is_fresh


def test_a_proof_sent_many_times_at_once_is_fresh_once(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    numbers = [(front, number) for front in fronts for number in front.send(*[UseProof(ProofRecord("p"))] * 50)]
    assert sum(front.answer(number).is_fresh for front, number in numbers) == 1


def test_a_visit_tells_the_epoch_in_force_and_writes_no_event(notary: Running) -> None:
    notary.front.ask(make_revoke())
    assert notary.front.ask(UseProof(ProofRecord("p"))).epoch == 1
    assert len(notary.events()) == 1
