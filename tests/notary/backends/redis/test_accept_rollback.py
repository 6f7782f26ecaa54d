"""A ledger that went back in time, whose store in Redis did not: what an operator's acceptance makes of both."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from ipc.operations.calls import ProofRecord, UseProof
from ipc.operations.leases import ReadEpoch
from notary.opening import open_state
from notary.programs.accept_rollback import accept
from notary.programs.accepting import NothingToAccept
from notary.store.contract import StoreGone
from tests.notary.running import Running, query, walk
from tests.notary.samples import NOW, make_hold, make_issue
from tests.notary.test_checkpoints import file_of, grow, notes, older
from tests.support.ports import closed_port
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("patient_backends")
REASON = "the disk died"


def lost(notary: Running) -> None:
    """An earlier copy of the ledger lies there; Redis knows of what came after it."""
    grow(notary)
    put_back = older(notary)
    notary.front.ask(make_issue(max_calls=3))
    notary.front.ask(make_hold())
    grow(notary)
    notary.stop()
    put_back()


def epoch_there(server: RedisServer, prefix: str) -> int:
    return int(server.ask("GET", f"{{{prefix}}}:epoch"))


def test_it_raises_the_epoch_in_redis_above_every_earlier_lease_and_the_gateway_continues(
    notary: Running, redis_server: RedisServer, prefix: str
) -> None:
    before = epoch_there(redis_server, prefix)
    marker = redis_server.ask("GET", f"{{{prefix}}}:marker")
    lost(notary)
    assert "it was cut, or an earlier copy was put back" in accept(notary.settings, REASON)
    front = notary.start()
    (event,) = [json.loads(one) for one in query(front, event_type="RollbackAccepted")]
    current = event["change"]["current_epoch"]
    assert current == epoch_there(redis_server, prefix) > max(before, 1_700_000_000)
    assert front.ask(ReadEpoch()) == current
    assert redis_server.ask("GET", f"{{{prefix}}}:marker") == marker, "it is the same store"
    assert query(front, event_type="AdminRevokeAll") == [], "one acceptance, and no loss beside it"
    assert front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert not front.ask(UseProof(ProofRecord("p", NOW))).is_fresh
    assert walk(front).intact
    notary.stop()
    with pytest.raises(NothingToAccept):
        accept(notary.settings, REASON)


def test_without_its_redis_nothing_is_accepted(notary: Running) -> None:
    lost(notary)
    kept = notes(notary)
    with closed_port() as port:
        store = msgspec.structs.replace(notary.settings.store, redis_url=f"redis://127.0.0.1:{port}")
        with pytest.raises(StoreGone, match="can't be used"):
            accept(msgspec.structs.replace(notary.settings, store=store), REASON)
    assert notes(notary) == kept
    assert list(notary.folder.glob("checkpoints.until-*")) == []
    assert accept(notary.settings, REASON).startswith("Accepted:")
    assert len(query(notary.start(), event_type="RollbackAccepted")) == 1


def test_a_killed_start_keeps_the_records_of_the_lost_time_in_redis(notary: Running, tmp_path: Path) -> None:
    """The whole folder was put back, and the file of checkpoints with it: only Redis knows that there was more."""
    grow(notary)
    notary.stop()
    copy = tmp_path / "copy"
    shutil.copytree(notary.folder, copy)
    front = notary.start()
    front.ask(make_issue(max_calls=3))
    front.ask(make_hold())
    grow(notary, 1)
    front.ask(make_hold())
    before = front.ask(ReadEpoch())
    notary.stop()
    shutil.rmtree(notary.folder)
    shutil.copytree(copy, notary.folder)
    open_state(notary.settings)[0].database.close()  # and no more, as if it was killed then
    front = notary.start()
    (event,) = [json.loads(one) for one in query(front, event_type="AdminRevokeAll")]
    assert event["change"]["previous_epoch"] == before < front.ask(ReadEpoch())
    assert file_of(notary).is_file()
    notary.stop()
    assert len(query(notary.start(), event_type="AdminRevokeAll")) == 1, "once"
