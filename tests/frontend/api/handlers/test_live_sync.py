"""Learned domains with live sync: what the egress proxy's list holds whenever an operator is answered."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from frontend.egress.proxy_list import HEAD
from frontend.egress.rules import LearnedRule, Rules, encode_rules
from frontend.notary.errors import NotaryUnavailable
from ipc.process.private_files import write_private
from ipc.settings import EgressSettings
from tests.support.front_core import Core, front_core, refuses, registry_of
from tests.support.held_calls import approve, held, reached, reaching, state_of
from tests.support.played_proxy import proxy_that, saying
from tests.support.worker_desk import until

DOMAINS, CLEAR, PATHS = "/v1/admin/domains", "/v1/admin/domains/clear", "/v1/admin/paths"
NEW = {"action_id": "echo", "domain": "new.example"}
OTHER = {"action_id": "echo", "domain": "*.other.example"}
FAILED = (500, {"error": "allowlist_sync_failed"})
FULL = NotaryUnavailable("the disk is full")


class Listed:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "squid" / "domains"
        self.path.parent.mkdir(exist_ok=True)

    @property
    def entries(self) -> list[str]:
        head, *lines = self.path.read_text().splitlines()
        assert head == HEAD
        return lines

    def break_off(self) -> None:
        """The folder is gone, with what it held: root is refused by no mode."""
        self.path.parent.rename(self.path.parent.with_name("away"))

    def mend(self) -> None:
        self.path.parent.with_name("away").rename(self.path.parent)


@asynccontextmanager
async def syncing(
    folder: Path, front_id: str = "front-1-a", profile: str = "direct_allowlist", proxy_url: str = "http://[::1]:1"
) -> AsyncIterator[tuple[Core, Listed]]:
    """A front with live sync whose one action may reach known.example, after its start."""
    listed = Listed(folder)
    manifest = reaching() | {"egress": {"profile": profile, "allowed_domains": ["known.example"]}}
    async with front_core(
        folder, manifest, front_id=front_id, workers=0, egress_proxy_url=proxy_url,
        egress=EgressSettings(proxy_allowlist_file=str(listed.path)),
    ) as core:  # fmt: skip
        await core.services.allow_list.sync()
        yield core, listed


async def told(core: Core, event_type: str) -> list[tuple[str, str | None]]:
    events = await core.events(event_type=event_type)
    return [(event["decision"], event.get("error_code")) for event in reversed(events)]


async def test_the_list_follows_every_change_before_it_is_answered(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed):
        assert listed.entries == ["known.example"]
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        assert listed.entries == ["known.example", "new.example"]
        assert (await core.operate("POST", DOMAINS, OTHER))[0] == 200
        assert listed.entries == [".other.example", "known.example", "new.example"]
        assert (await core.operate("DELETE", DOMAINS, NEW))[0] == 200
        assert listed.entries == [".other.example", "known.example"]
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        assert await core.operate("DELETE", CLEAR) == (200, {"cleared": True, "count": 2})
        assert listed.entries == ["known.example"]


async def test_a_domain_stays_listed_until_no_rule_needs_it(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed):
        both = registry_of(tmp_path / "both", reaching(), reaching("more"))
        core.services.configuration.current.registry = both
        mine, theirs, manifests = NEW, NEW | {"action_id": "more"}, NEW | {"domain": "known.example"}
        for body in (mine, theirs, manifests):
            assert (await core.operate("POST", DOMAINS, body))[0] == 200
        for body, left in ((mine, ["known.example", "new.example"]), (theirs, ["known.example"])):
            assert (await core.operate("DELETE", DOMAINS, body))[0] == 200
            assert listed.entries == left
        assert (await core.operate("DELETE", DOMAINS, manifests))[0] == 200
        assert listed.entries == ["known.example"]


async def test_a_domain_is_listed_before_it_counts_and_counts_no_more_before_it_is_gone(tmp_path: Path) -> None:
    """At no instant does a call go to a domain that the proxy's list would not have."""
    async with syncing(tmp_path) as (core, listed):
        learned, seen = core.services.learned, list[tuple[bool, bool]]()
        turn = learned._file.exclusive.turn

        def look() -> None:
            seen.append(("new.example" in listed.entries, "new.example" in learned.for_action("echo").domains))

        @asynccontextmanager
        async def watched() -> AsyncIterator[Any]:
            async with turn() as own:
                replace = own.replace

                async def looks(content: bytes) -> None:
                    look()
                    await replace(content)
                    look()

                own.replace = looks  # type: ignore[method-assign]
                yield own

        learned._file.exclusive.turn = watched  # type: ignore[method-assign]
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        assert seen == [(True, False), (True, True)]
        assert (await core.operate("DELETE", DOMAINS, NEW))[0] == 200
        assert seen[2:] == [(True, True), (True, False)]
        assert listed.entries == ["known.example"]


async def test_a_domain_that_can_not_be_listed_is_not_learned(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed):
        agent = await core.agent()
        listed.break_off()
        assert await core.operate("POST", DOMAINS, NEW) == FAILED
        assert (await core.operate("GET", DOMAINS))[1] == {"domains": []}
        assert await told(core, "DomainAdded") == [("allow", None), ("error", "allowlist_sync_failed")]
        assert await reached(core, agent, {"host": "new.example"}) == ("new.example",)
        listed.mend()
        assert listed.entries == ["known.example"]
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        assert listed.entries == ["known.example", "new.example"]


@pytest.mark.parametrize(
    ("path", "body", "event"),
    [(DOMAINS, NEW, "DomainRemoved"), (CLEAR, b"", "DomainCleared")],
    ids=["one is removed", "all are cleared"],
)
async def test_what_is_taken_back_is_gone_here_and_not_answered_as_done_while_it_is_still_listed(
    tmp_path: Path, path: str, body: Any, event: str
) -> None:
    async with syncing(tmp_path) as (core, listed):
        agent = await core.agent()
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        listed.break_off()
        assert await core.operate("DELETE", path, body) == FAILED
        assert await told(core, event) == [("allow", None), ("error", "allowlist_sync_failed")]
        assert await reached(core, agent, {"host": "new.example"}) == ("new.example",), "it counts no more"
        assert await core.operate("DELETE", path, body) == FAILED, "nor is it said to be gone when asked again"
        listed.mend()
        assert listed.entries == ["known.example", "new.example"]
        assert (await core.operate("DELETE", path, body))[0] == (404 if path == DOMAINS else 200)
        assert listed.entries == ["known.example"]


async def test_a_lesson_that_can_not_be_listed_is_not_kept_and_the_result_stands(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed):
        core.desk.start("http")
        _agent, approval_id = await held(core, host="new.example")
        listed.break_off()
        status, body = await approve(core, approval_id, "?learn_domain=new.example")
        assert (status, body["learn_error"], await state_of(core, approval_id)) == (
            200, "allowlist_sync_failed", "approved",
        )  # fmt: skip
        assert (await core.operate("GET", DOMAINS))[1] == {"domains": []}


async def test_an_approved_call_whose_domain_can_not_be_listed_is_not_run(tmp_path: Path) -> None:
    async with (
        proxy_that(saying(b"HTTP/1.1 501 No\r\n\r\n")) as url,
        syncing(tmp_path, profile="proxy_allowlist", proxy_url=url) as (core, listed),
    ):
        agent, approval_id = await held(core, host="new.example")
        listed.break_off()
        assert await approve(core, approval_id) == FAILED
        listed.mend()
        assert (await state_of(core, approval_id), await core.remaining(agent)) == ("failed", 3)
        assert "Open" not in core.client.asked
        assert (await told(core, "ActionCall"))[-1] == ("error", "allowlist_sync_failed")


async def test_nothing_is_listed_without_evidence_and_nothing_goes_without_it(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed):
        inode = listed.path.stat().st_ino
        core.client.faults["WriteEvent"] = refuses(FULL)
        assert (await core.operate("POST", DOMAINS, NEW))[1] == {"error": "evidence_store_unavailable"}
        assert listed.path.stat().st_ino == inode, "it was never written"
        core.client.faults.clear()
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        core.client.faults["WriteEvent"] = refuses(FULL)
        assert (await core.operate("DELETE", CLEAR))[1] == {"error": "evidence_store_unavailable"}
        assert listed.entries == ["known.example", "new.example"]


async def test_while_learned_rules_can_not_be_believed_only_manifests_are_listed(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed):
        assert (await core.operate("POST", DOMAINS, NEW))[0] == 200
        path = tmp_path / "fronts" / "learned.json"
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])
        await core.services.allow_list.sync()
        assert listed.entries == ["known.example"]
        path.write_bytes(whole)
        await core.services.allow_list.sync()
        assert listed.entries == ["known.example", "new.example"]


async def test_changes_of_two_fronts_at_once_are_all_listed_when_they_are_answered(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed), syncing(tmp_path, front_id="front-2-b") as (other, _):

        async def live(front: Core, number: int) -> None:
            body = NEW | {"domain": f"n{number}.example"}
            assert (await front.operate("POST", DOMAINS, body))[0] == 200
            assert body["domain"] in listed.entries
            if number % 2:
                assert (await front.operate("DELETE", DOMAINS, body))[0] == 200
                assert body["domain"] not in listed.entries

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(live, (core, other)[number // 4], number)
        assert listed.entries == ["known.example", "n0.example", "n2.example", "n4.example", "n6.example"]
        assert os.listdir(listed.path.parent) == ["domains"]
        assert json.loads((tmp_path / "fronts" / "learned.json").read_text())["version"] == 1


async def test_what_somebody_else_wrote_into_the_learned_rules_is_listed_soon(tmp_path: Path) -> None:
    async with syncing(tmp_path) as (core, listed), trio.open_nursery() as nursery:
        nursery.start_soon(core.services.allow_list.watch)
        rule = LearnedRule("echo", "theirs.example", "cli", "2026-11-21T11:12:13.123Z", "ada")
        write_private(tmp_path / "fronts" / "learned.json", encode_rules(Rules(domains=(rule,))))
        await until(lambda: listed.entries == ["known.example", "theirs.example"])
        nursery.cancel_scope.cancel()
