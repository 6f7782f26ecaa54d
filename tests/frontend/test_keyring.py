"""Keys in force: what a front does when the files of its signing keys change under it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest
import trio

from frontend import keyring as module
from frontend.auth.keyfiles import write_private
from frontend.auth.keysets import ListedKey, write_set
from frontend.auth.make_keys import make_keys
from frontend.auth.signing_keys import receipt_place, rotate
from frontend.evidence.ledger import LedgerUnavailable
from frontend.keyring import KeysRefused
from tests.support.front_core import Agent, Core, action, front_core, refuses, then
from tests.support.logs import capture_logs
from tests.support.worker_desk import until

PURPOSES = ("lease", "grant", "receipt")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other soon."""
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.01)


@asynccontextmanager
async def watching(folder: Path, *manifests: dict[str, Any], **given: Any) -> AsyncIterator[Core]:
    """A front that follows its files."""
    async with front_core(folder, *manifests, **given) as core, trio.open_nursery() as nursery:
        nursery.start_soon(core.services.keyring.watch)
        yield core
        nursery.cancel_scope.cancel()


def in_force(core: Core) -> dict[str, str]:
    """What the services themselves sign with."""
    ring = core.services.keyring
    return {"lease": ring.leases.kid, "grant": ring.grants.kid, "receipt": ring.signer.kid}


def turn(core: Core, purpose: str) -> str:
    """Rotate on the disk; the id of the next key."""
    return rotate(getattr(core.services.keyring.places, purpose))[1].kid


async def receipt_of(core: Core, agent: Agent, called: dict[str, Any]) -> dict[str, Any]:
    answer = await agent.send("GET", f"/v1/receipts/{called['receipt_id']}")
    assert answer.status == 200, answer.body
    return dict(msgspec.json.decode(answer.body))


async def test_each_key_is_followed_and_leaves_its_event(tmp_path: Path) -> None:
    async with watching(tmp_path) as core:
        agent = await core.agent()
        _, called = await agent.call()
        for purpose in PURPOSES:
            before = in_force(core)
            next_id = turn(core, purpose)
            await until(lambda: in_force(core) == before | {purpose: next_id})  # noqa: B023
            assert core.services.keyring.keys.kids() == in_force(core)
            (event,) = [one for one in await core.events(event_type="KeysRotated") if one["key_id"] == next_id]
            assert (event["key_purpose"], event["previous_key_id"]) == (purpose, before[purpose])
            assert (event["principal"], event["decision"]) == ("gateway", "allow")
            assert (await agent.call())[0] == 200
        status, latest = await agent.call()
        assert status == 200
        first, last = [await receipt_of(core, agent, one) for one in (called, latest)]
        assert [one["signature_status"] for one in (first, last)] == ["verified", "verified"]
        assert last["signing_key_id"] == in_force(core)["receipt"] != first["signing_key_id"]
        fresh = await core.agent()
        assert jwt.get_unverified_header(fresh.token)["kid"] == in_force(core)["lease"]
        assert jwt.get_unverified_header(agent.token)["kid"] != in_force(core)["lease"]
        assert len(await core.events(event_type="KeysRotated")) == 3


async def test_a_key_signs_only_once_its_event_is_durable(tmp_path: Path) -> None:
    async with watching(tmp_path) as core:
        before = in_force(core)
        core.ledger.faults["append"] = refuses(LedgerUnavailable("full"))
        next_id = turn(core, "receipt")
        asked = len(core.ledger.asked)
        await until(lambda: len(core.ledger.asked) > asked + 3)
        assert in_force(core) == before
        assert await core.events(event_type="KeysRotated") == []
        core.ledger.faults.clear()
        await until(lambda: in_force(core)["receipt"] == next_id)
        assert len(await core.events(event_type="KeysRotated")) == 1


async def test_files_that_can_not_be_used_change_nothing_and_are_named_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with watching(tmp_path) as core:
            before, key = in_force(core), core.services.keyring.places.grant.key
            whole = key.read_bytes()

            def named(words: str) -> bool:
                return any(words in str(line.get("problem")) for line in logs)

            key.unlink()
            await until(lambda: named("grant.pem: cannot read it: No such file"))
            key.write_bytes(whole[:80])
            await until(lambda: named("grant.pem: mode 0644 lets others in. Use chmod 0600."))
            key.chmod(0o600)
            await until(lambda: named("grant.pem: is not an unencrypted private key in PEM form."))
            assert in_force(core) == before
            assert (await (await core.agent()).call())[0] == 200
            lease_id = turn(core, "lease")  # which the other file does not hold up
            await until(lambda: in_force(core) == before | {"lease": lease_id})
            key.write_bytes(whole)
            next_id = turn(core, "grant")
            await until(lambda: in_force(core)["grant"] == next_id)
            told = [line["problem"] for line in logs if "problem" in line]
            assert len(told) == len(set(told)) == 3


async def test_a_receipt_key_that_somebody_takes_out_of_the_set_comes_back(tmp_path: Path) -> None:
    async with watching(tmp_path) as core:
        agent = await core.agent()
        _, called = await agent.call()
        ring = core.services.keyring
        key_set = ring.places.receipt.set
        assert key_set is not None
        next_id = turn(core, "receipt")
        await until(lambda: in_force(core)["receipt"] == next_id)
        whole = msgspec.json.decode(key_set.read_bytes())
        for kept in ([], [ring.keys.receipt.current]):
            key_set.unlink()
            if kept:
                write_set(key_set, kept)
            await until(lambda: key_set.exists() and msgspec.json.decode(key_set.read_bytes()) == whole)
        assert (await receipt_of(core, agent, called))["signature_status"] == "verified"
        assert len(ring.signer.jwks()["keys"]) == 2


async def test_every_key_that_can_not_be_used_is_a_problem_of_its_own(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        ring = core.services.keyring
        ring.places.lease.key.unlink()
        assert ring.places.receipt.set is not None
        ring.places.receipt.set.chmod(0o644)
        with pytest.raises(KeysRefused) as refused:
            ring.prepare()
        assert [problem.rsplit("/", 1)[1] for problem in refused.value.problems] == [
            "lease.pem: cannot read it: No such file or directory.",
            "receipt-keys.jwks.json: mode 0644 lets others in. Use chmod 0600.",
        ]


async def test_what_was_read_earlier_never_follows_what_was_read_later(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        ring = core.services.keyring
        turn(core, "receipt")
        earlier = ring.prepare()
        next_id = turn(core, "receipt")
        await ring.put_in_force(ring.prepare())
        await ring.put_in_force(earlier)
        assert in_force(core)["receipt"] == next_id
        assert len(await core.events(event_type="KeysRotated")) == 1


async def test_a_key_that_comes_back_signs_again_even_where_no_times_were_kept(tmp_path: Path) -> None:
    make_keys(tmp_path)
    key, key_set = tmp_path / "keys" / "receipt.pem", tmp_path / "receipt-keys.jwks.json"
    first = key.read_bytes()
    rotate(receipt_place(key, key_set))
    # As a version that kept no times left it.
    keys = msgspec.json.decode(key_set.read_bytes())["keys"]
    write_set(key_set, [ListedKey({name: one[name] for name in one if "_at" not in name}) for one in keys])
    async with front_core(tmp_path) as core:
        ring = core.services.keyring
        before = in_force(core)["receipt"]
        write_private(key, first)
        await ring.put_in_force(ring.prepare())
        assert in_force(core)["receipt"] not in ("", before)
        assert len(await core.events(event_type="KeysRotated")) == 1


async def test_a_key_that_stays_is_no_event(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        ring = core.services.keyring
        before = in_force(core)
        await ring.put_in_force(ring.prepare())
        ring.places.lease.key.touch()
        await ring.put_in_force(ring.prepare())
        assert in_force(core) == before
        assert await core.events(event_type="KeysRotated") == []


async def test_a_call_whose_grant_was_signed_before_the_rotation_runs(tmp_path: Path) -> None:
    async with front_core(tmp_path, action("grant_keys")) as core:
        ring = core.services.keyring
        agent = await core.agent()
        _, called = await agent.call("grant_keys")
        (known,) = [key["kid"] for key in called["output"]["keys"]]
        turn(core, "grant")
        keys = ring.prepare()
        # Between the intent and the worker, when the grant is signed and on its way.
        core.ledger.faults["begin"] = then(lambda: ring.grants.use(keys.grant.private))
        status, called = await agent.call("grant_keys")
        assert status == 200
        assert [key["kid"] for key in called["output"]["keys"]] == [keys.grant.kid, known]
        assert len(core.desk.processes) == 1  # no worker was replaced for it


async def test_two_fronts_agree_although_one_is_slower_to_follow(tmp_path: Path) -> None:
    async with front_core(tmp_path) as slow, front_core(tmp_path, front_id="front-2-b") as quick:
        for purpose in ("lease", "receipt"):
            turn(slow, purpose)
        ring = quick.services.keyring
        await ring.put_in_force(ring.prepare())
        assert in_force(slow)["lease"] != in_force(quick)["lease"]
        for core, other in ((quick, slow), (slow, quick)):
            agent = await core.agent()
            there = Agent(other, agent.key, agent.token, agent.session_id)
            for where in (agent, there):
                status, called = await where.call()
                assert status == 200, called
                for reader in (agent, there):
                    assert (await receipt_of(reader.core, reader, called))["signature_status"] == "verified"
