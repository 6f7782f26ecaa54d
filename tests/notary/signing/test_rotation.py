"""Keys in force: what a notary does when the files of its signing keys change under it."""

import json
import re

import jwt
import pytest

from ipc.keys.verifier_keys import key_id
from ipc.operations.evidence import ReadCheckpoint, ShowReceipt
from ipc.operations.keys import CheckKeys, FollowKeys
from ipc.texts.encoding import b64url_decode
from notary.signing.keys import rotate
from notary.signing.keysets import ListedKey, write_set
from notary.signing.rotation import Signers
from notary.tree.checkpoint import parted
from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running, query
from tests.notary.samples import make_issue, record_call
from tests.support.asking import Asker, Told
from tests.support.dying_rotation import places_in
from tests.support.logs import capture_logs

PURPOSES = ("lease", "grant", "receipt", "checkpoint")


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary that reads its key files when it is asked to, and not by itself."""
    return start_notary(limits=UNDISTURBED)


def turn(notary: Running, purpose: str) -> str:
    """Rotate on the disk; the id of the next key."""
    return rotate(getattr(places_in(notary.folder), purpose))[1].kid


def follow(front: Asker) -> list[str]:
    problems: list[str] = front.ask(FollowKeys())
    return problems


def rotations(front: Asker) -> list[dict[str, str]]:
    """Events of rotations, newest first."""
    return [json.loads(event) for event in query(front, event_type="KeysRotated")]


def signing(notary: Running) -> dict[str, str]:
    """The keys that the notary itself signs with."""
    token = notary.front.ask(make_issue()).lease_jwt
    asked, closed = record_call(notary.front)
    receipt = json.loads(notary.front.ask(ShowReceipt(closed.receipt_id)).receipt)
    (grant,) = notary.stored("SELECT grant_jws FROM intents WHERE intent_id = ?", asked.intent_id)
    return {
        "lease": jwt.get_unverified_header(token)["kid"], "grant": jwt.get_unverified_header(grant)["kid"],
        "receipt": receipt["signing_key_id"], "checkpoint": checkpoint_key(notary),
    }  # fmt: skip


def checkpoint_key(notary: Running) -> str:
    """Id of the key that has signed the newest checkpoint."""
    shown = notary.front.ask(ReadCheckpoint())
    ((name, identifier, _),) = parted(shown.checkpoint)[1]
    listed = json.loads((notary.folder / "checkpoint-keys.jwks.json").read_bytes())["keys"]
    (kid,) = [jwk["kid"] for jwk in listed if key_id(name, b64url_decode(jwk["x"])) == identifier]
    return str(kid)


def status(front: Asker, receipt_id: str) -> str:
    return str(front.ask(ShowReceipt(receipt_id)).signature_status)


def test_a_followed_key_has_its_event_and_reaches_every_front_before_its_first_signature(notary: Running) -> None:
    other = notary.attach("another")
    front = notary.front
    _, called = record_call(front)
    for purpose in PURPOSES:
        before = signing(notary)
        next_id = turn(notary, purpose)
        assert follow(front) == []
        assert signing(notary) == before | {purpose: next_id} == front.in_force[-1].signing_keys
        (event,) = [one for one in rotations(front) if one["key_id"] == next_id]
        assert (event["key_purpose"], event["previous_key_id"]) == (purpose, before[purpose])
        assert (event["principal"], event["decision"]) == ("gateway", "allow")
        assert re.fullmatch(r"trc_[0-9a-f-]{36}", event["trace_id"])
    assert status(other, called.receipt_id) == "verified"
    assert other.in_force[-1] == front.in_force[-1]
    assert len(other.in_force) == 1 + len(PURPOSES)
    assert len(rotations(front)) == len(PURPOSES)


@pytest.mark.large
def test_a_notary_looks_at_its_files_by_itself(start_notary: StartNotary) -> None:
    notary = start_notary()
    next_id = turn(notary, "receipt")
    for _ in range(100_000):
        if rotations(notary.front):
            break
    assert [event["key_id"] for event in rotations(notary.front)] == [next_id]


def test_a_key_signs_only_once_its_event_is_durable(notary: Running) -> None:
    front = notary.front
    before = signing(notary)
    next_id = turn(notary, "receipt")
    with notary.stranger() as stranger:
        stranger.execute("ALTER TABLE journal RENAME TO elsewhere")
        with pytest.raises(Told) as told:
            follow(front)
        assert (told.value.problem, told.value.part) == ("unavailable", "ledger")
        stranger.execute("ALTER TABLE elsewhere RENAME TO journal")
    assert front.in_force[-1].signing_keys == before
    assert follow(front) == []
    assert signing(notary) == before | {"receipt": next_id}
    assert len(rotations(front)) == 1


def test_files_that_can_not_be_used_change_nothing_and_hold_up_no_other_key(notary: Running) -> None:
    front = notary.front
    before, key = signing(notary), notary.folder / "keys" / "grant.pem"
    whole = key.read_bytes()
    key.unlink()
    assert follow(front) == front.ask(CheckKeys()) == [f"{key}: cannot read it: No such file or directory."]
    key.write_bytes(whole[:80])
    assert follow(front) == [f"{key}: mode 0644 lets others in. Use chmod 0600."]
    key.chmod(0o600)
    assert follow(front) == [f"{key}: is not an unencrypted private key in PEM form."]
    assert signing(notary) == before
    lease_id = turn(notary, "lease")
    assert len(follow(front)) == 1
    assert signing(notary) == before | {"lease": lease_id}
    key.write_bytes(whole)
    assert follow(front) == []


def test_a_problem_is_said_once_and_not_before_it_was_seen_twice(notary: Running) -> None:
    signers = notary.thread.state.signers
    with capture_logs() as lines:
        for problems in (["a"], ["a"], ["a"], ["b"], [], ["b"], ["b"]):
            signers.complain(problems)
    assert [line["problem"] for line in lines] == ["a", "b"]


def test_a_check_puts_nothing_in_force(notary: Running) -> None:
    before = signing(notary)
    for purpose in PURPOSES:
        turn(notary, purpose)
    assert notary.front.ask(CheckKeys()) == []
    assert notary.front.in_force[-1].signing_keys == before


def test_a_receipt_key_that_was_taken_out_of_the_set_comes_back(notary: Running) -> None:
    front = notary.front
    _, called = record_call(front)
    place = places_in(notary.folder).receipt
    assert place.set is not None
    turn(notary, "receipt")
    follow(front)
    whole = json.loads(place.set.read_bytes())
    for kept in ([], [ListedKey({name: one for name, one in whole["keys"][1].items() if "_at" not in name})]):
        place.set.unlink()
        if kept:
            write_set(place.set, kept)
        assert follow(front) == []
        assert {one["kid"] for one in json.loads(place.set.read_bytes())["keys"]} == {
            one["kid"] for one in whole["keys"]
        }
    assert status(front, called.receipt_id) == "verified"


def test_a_key_that_stays_is_no_event(notary: Running) -> None:
    before = signing(notary)
    follow(notary.front)
    told = list(notary.front.in_force)
    places_in(notary.folder).lease.key.touch()
    assert follow(notary.front) == []
    assert signing(notary) == before
    assert rotations(notary.front) == []
    assert notary.front.in_force == told, "no front hears of it again"


def test_a_rotation_is_in_the_log_with_the_ids_of_both_keys(notary: Running) -> None:
    before = signing(notary)["grant"]
    next_id = turn(notary, "grant")
    with capture_logs() as lines:
        follow(notary.front)
        notary.front.ask(CheckKeys())
    (line,) = [line for line in lines if line["event"] == "another key signs from now on"]
    assert (line["key_purpose"], line["key_id"], line["previous_key_id"]) == ("grant", next_id, before)


def test_a_set_of_receipt_keys_that_is_gone_is_told_once_the_ledger_has_begun(start_notary: StartNotary) -> None:
    running = start_notary()
    running.close()
    with capture_logs() as lines:
        Signers.open(running.settings)
    assert lines == []
    lost = places_in(running.folder).receipt.set
    assert lost is not None
    lost.unlink()
    with capture_logs() as lines:
        Signers.open(running.settings)
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("the set of receipt keys was gone and is made anew", "warning")
    assert str(lost) in line["mend"]
