"""Learned domains and paths over the operator's endpoints: what they answer, what they leave, and what a call sees."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from frontend.egress.rules import MAX_PER_ACTION, LearnedRule, Rules, encode_rules
from frontend.notary.errors import NotaryUnavailable
from ipc.process.private_files import write_private
from tests.support.coded import Coded
from tests.support.front_core import Core, action, does_and_says, front_core, refuses, registry_of, then
from tests.support.held_calls import filing, reached, reaching

pytestmark = pytest.mark.front(workers=0)

FULL = NotaryUnavailable("the disk is full")
DOMAINS, PATHS = "/v1/admin/domains", "/v1/admin/paths"
HERE = {"action_id": "echo", "domain": "new.example"}
THERE = {"action_id": "echo", "path": "new/**"}
AT = {"domain": DOMAINS, "path": PATHS}
WISH: dict[str, dict[str, str]] = {"domain": HERE, "path": THERE}
CALL = {"domain": {"host": "new.example"}, "path": {"path": "new/a"}}
SUBJECT = {"domain": "new.example", "path": "new/a"}
KINDS = ("domain", "path")


def an_action(noun: str) -> dict[str, Any]:
    return reaching() if noun == "domain" else filing()


async def told(core: Core, event_type: str) -> list[dict[str, Any]]:
    return await core.events(event_type=event_type)


@pytest.mark.parametrize("noun", KINDS)
async def test_a_rule_is_added_listed_used_removed_and_gone(tmp_path: Path, noun: str) -> None:
    async with front_core(tmp_path, an_action(noun), workers=0) as core:
        agent, at, wish = await core.agent(), AT[noun], WISH[noun]
        assert await reached(core, agent, CALL[noun]) == (SUBJECT[noun],)
        status, body = await core.operate("POST", at, wish)
        assert (status, body) == (200, wish | ({"path_glob": wish["path"]} if noun == "path" else {}))
        _, listed = await core.operate("GET", at)
        (item,) = listed[f"{noun}s"]
        assert item.pop("added_at").endswith("Z")
        assert item == body | {"source": "cli", "added_by": "op"}
        assert await reached(core, agent, CALL[noun]) == ()
        assert await core.operate("DELETE", at, wish) == (200, {"removed": True})
        assert await reached(core, agent, CALL[noun]) == (SUBJECT[noun],)
        assert await core.operate("GET", at) == (200, {f"{noun}s": []})
        assert await core.operate("DELETE", at, wish) == (404, {"error": f"{noun}_not_found"})
        for kind in ("Added", "Removed"):
            (event,) = await told(core, f"{noun.title()}{kind}")
            assert (event["principal"], event["action_id"], event["decision"]) == ("operator:op", "echo", "allow")
            assert event["reason"] == wish[noun]
            assert event["operator_proof_jti"]


@pytest.mark.parametrize("noun", KINDS)
async def test_a_list_and_a_clearing_are_of_one_action_or_of_all(tmp_path: Path, noun: str) -> None:
    async with front_core(tmp_path, action(), action("other"), workers=0) as core:
        at, names = AT[noun], [("echo", "b.example"), ("other", "a.example"), ("echo", "a.example")]
        for action_id, name in names:
            assert (await core.operate("POST", at, {"action_id": action_id, noun: name}))[0] == 200

        async def listed(query: str = "") -> list[tuple[str, str]]:
            _, body = await core.operate("GET", at + query)
            return [(item["action_id"], item[noun]) for item in body[f"{noun}s"]]

        assert await listed() == [("echo", "b.example"), ("echo", "a.example"), ("other", "a.example")]
        assert await listed("?action=other") == [("other", "a.example")]
        assert await listed("?action=nobody") == []
        clear = at + "/clear"
        assert await core.operate("DELETE", clear + "?action=echo") == (200, {"cleared": True, "count": 2})
        assert await listed() == [("other", "a.example")]
        assert await core.operate("DELETE", clear) == (200, {"cleared": True, "count": 1})
        assert await core.operate("DELETE", clear) == (200, {"cleared": True, "count": 0})
        events = await told(core, f"{noun.title()}Cleared")
        assert [(event.get("action_id"), event["reason"]) for event in events] == [
            (None, "0 rules"), (None, "1 rules"), ("echo", "2 rules"),
        ]  # fmt: skip
        for query in ("?action=", "?action=../x", "?other=1", "?action=a&action=b"):
            for method, path in (("GET", at), ("DELETE", clear)):
                assert await core.operate(method, path + query) == (400, Coded("invalid_request"))


REFUSED: list[tuple[str, str, object, int, str]] = [
    ("POST", DOMAINS, HERE | {"domain": "localhost"}, 400, "invalid_domain"),
    ("DELETE", DOMAINS, HERE | {"domain": "::1"}, 400, "invalid_domain"),
    ("POST", DOMAINS, HERE | {"action_id": "nobody"}, 400, "unknown_action"),
    ("POST", DOMAINS, HERE | {"action_id": ""}, 400, "unknown_action"),
    ("DELETE", DOMAINS, HERE | {"action_id": "nobody"}, 404, "domain_not_found"),
    ("POST", DOMAINS, {"action_id": "echo"}, 400, "invalid_request"),
    ("POST", DOMAINS, {"domain": "a.example"}, 400, "invalid_request"),
    ("POST", DOMAINS, HERE | {"more": 1}, 400, "invalid_request"),
    ("POST", DOMAINS, b"", 400, "invalid_request"),
    ("DELETE", DOMAINS, b"", 400, "invalid_request"),
    ("POST", PATHS, THERE | {"path": "/etc/x"}, 400, "invalid_path"),
    ("POST", PATHS, THERE | {"action_id": "nobody"}, 400, "unknown_action"),
    ("POST", PATHS, {"action_id": "echo"}, 400, "invalid_request"),
    ("POST", PATHS, THERE | {"path_glob": "other/**"}, 400, "invalid_request"),
    ("DELETE", PATHS, THERE, 404, "path_not_found"),
]


async def test_a_rule_that_can_not_be_learned_is_refused_by_its_code_and_not_stored(core: Core, tmp_path: Path) -> None:
    for method, path, body, status, code in REFUSED:
        core.services.rates = type(core.services.rates)()
        answer = await core.operate(method, path, body)
        assert (answer[0], answer[1]["error"]) == (status, code), (method, path, body, answer)
        if code.startswith("invalid"):
            assert answer[1]["message"], answer
    for kind in ("DomainAdded", "DomainRemoved", "PathAdded", "PathRemoved"):
        assert await told(core, kind) == []
    assert not (tmp_path / "fronts" / "learned.json").exists()


async def test_a_rule_is_known_in_whatever_spelling_it_comes_again(core: Core) -> None:
    assert (await core.operate("POST", DOMAINS, HERE))[0] == 200
    again = HERE | {"domain": "NEW.Example"}
    assert await core.operate("POST", DOMAINS, again) == (409, {"error": "domain_already_exists"})
    assert await core.operate("DELETE", DOMAINS, again) == (200, {"removed": True})
    assert (await core.operate("POST", PATHS, THERE))[0] == 200
    glob = {"action_id": "echo", "path_glob": "new/**"}
    assert await core.operate("POST", PATHS, glob) == (409, {"error": "path_already_exists"})
    assert await core.operate("POST", PATHS, THERE | glob) == (409, {"error": "path_already_exists"})
    assert await core.operate("DELETE", PATHS, glob) == (200, {"removed": True})


async def test_a_rule_of_an_action_that_is_gone_can_still_be_seen_and_removed(core: Core, tmp_path: Path) -> None:
    assert (await core.operate("POST", DOMAINS, HERE))[0] == 200
    core.services.configuration.current.registry = registry_of(tmp_path / "others", action("other"))
    assert len((await core.operate("GET", DOMAINS))[1]["domains"]) == 1
    assert await core.operate("POST", DOMAINS, HERE) == (400, {"error": "unknown_action"})
    assert await core.operate("DELETE", DOMAINS, HERE) == (200, {"removed": True})


# ------------------------------------------------------------------ more fronts than one


@pytest.mark.parametrize("noun", KINDS)
async def test_what_one_front_learns_and_forgets_counts_for_the_next_call_of_another(tmp_path: Path, noun: str) -> None:
    manifest = an_action(noun)
    async with (
        front_core(tmp_path, manifest, workers=0) as core,
        front_core(tmp_path, manifest, front_id="front-2-b", workers=0) as other,
    ):
        agent = await core.agent()
        for _ in range(3):
            assert await reached(core, agent, CALL[noun]) == (SUBJECT[noun],)
            assert (await other.operate("POST", AT[noun], WISH[noun]))[0] == 200
            assert await reached(core, agent, CALL[noun]) == ()
            assert (await other.operate("DELETE", AT[noun], WISH[noun]))[0] == 200


async def test_simultaneous_additions_add_a_domain_once_and_lose_no_other(tmp_path: Path) -> None:
    async with front_core(tmp_path, workers=0) as core, front_core(tmp_path, front_id="front-2-b", workers=0) as other:
        answers: list[int] = []

        async def add(front: Core, domain: str) -> None:
            answers.append((await front.operate("POST", DOMAINS, HERE | {"domain": domain}))[0])

        async with trio.open_nursery() as nursery:
            for number in range(4):
                for front in (core, other):
                    nursery.start_soon(add, front, "same.example")
                    nursery.start_soon(add, front, f"{front.services.front_id}.n{number}.example")
        assert sorted(answers) == [200] * 9 + [409] * 7
        _, listed = await core.operate("GET", DOMAINS)
        assert len({item["domain"] for item in listed["domains"]}) == len(listed["domains"]) == 9
        assert len(await told(core, "DomainAdded")) == 9


# ------------------------------------------------------------------ bounds


async def test_an_action_learns_so_many_rules_and_no_more(tmp_path: Path) -> None:
    full = tuple(
        LearnedRule("echo", f"n{i}.example", "cli", "2026-11-21T11:12:13.123Z", "ada") for i in range(MAX_PER_ACTION)
    )
    (tmp_path / "fronts").mkdir(0o700)
    write_private(tmp_path / "fronts" / "learned.json", encode_rules(Rules(domains=full)))
    async with front_core(tmp_path, action(), action("other"), workers=0) as core:
        assert await core.operate("POST", DOMAINS, HERE) == (409, Coded("too_many_rules"))
        assert (await core.operate("POST", DOMAINS, HERE | {"domain": "n1.example"}))[1] == {
            "error": "domain_already_exists"
        }
        assert (await core.operate("POST", DOMAINS, HERE | {"action_id": "other"}))[0] == 200
        assert (await core.operate("POST", PATHS, THERE))[0] == 200
        assert (await core.operate("DELETE", DOMAINS, HERE | {"domain": "n1.example"}))[0] == 200
        assert (await core.operate("POST", DOMAINS, HERE))[0] == 200


async def test_a_file_never_grows_beyond_what_is_read_again(tmp_path: Path) -> None:
    path, long = tmp_path / "fronts" / "learned.json", ("x" * 240 + "/") * 2
    at = "2026-11-21T11:12:13.123Z"
    many = tuple(LearnedRule(f"a{number // 100}", f"{long}{number:04}", "cli", at, "ada") for number in range(2000))
    fitting = 1_040_000 // (len(encode_rules(Rules(paths=many))) // len(many))
    path.parent.mkdir(0o700)
    write_private(path, encode_rules(Rules(paths=many[:fitting])))
    async with front_core(tmp_path, workers=0) as core:
        answers: list[int] = []
        body: Any = None
        while answers[-1:] in ([], [200]) and len(answers) < 40:
            core.services.rates = type(core.services.rates)()
            status, body = await core.operate("POST", PATHS, THERE | {"path": f"{long}{len(answers):04}"})
            answers.append(status)
        assert (answers[-1], body["error"]) == (409, "too_many_rules")
        assert len(answers) > 2
        assert len((await core.operate("GET", PATHS))[1]["paths"]) == fitting + len(answers) - 1


# ------------------------------------------------------------------ evidence and faults


@pytest.mark.parametrize("noun", KINDS)
async def test_nothing_is_learned_or_forgotten_without_evidence(core: Core, noun: str) -> None:
    failed = (503, {"error": "evidence_store_unavailable"})
    core.client.faults["WriteEvent"] = refuses(FULL)
    assert await core.operate("POST", AT[noun], WISH[noun]) == failed
    assert (await core.operate("GET", AT[noun]))[1] == {f"{noun}s": []}
    core.client.faults.clear()
    assert (await core.operate("POST", AT[noun], WISH[noun]))[0] == 200
    core.client.faults["WriteEvent"] = does_and_says(FULL)
    assert await core.operate("DELETE", AT[noun], WISH[noun]) == failed
    assert await core.operate("DELETE", AT[noun] + "/clear") == failed
    assert len((await core.operate("GET", AT[noun]))[1][f"{noun}s"]) == 1
    # The ledger took them, but its answer was lost: the last event says that nothing was changed.
    for kind in ("Removed", "Cleared"):
        events = await told(core, f"{noun.title()}{kind}")
        assert [event["decision"] for event in events] == ["error", "allow"]


async def test_a_failed_change_is_recorded_as_an_error(core: Core, tmp_path: Path) -> None:
    path = tmp_path / "fronts" / "learned.json"
    core.client.faults["WriteEvent"] = then(lambda: path.mkdir(exist_ok=True))
    assert await core.operate("POST", DOMAINS, HERE) == (503, {"error": "learned_rules_unavailable"})
    events = await told(core, "DomainAdded")
    assert [(event["decision"], event.get("error_code")) for event in events] == [
        ("error", "learned_rules_unavailable"), ("allow", None),
    ]  # fmt: skip
    assert {event["reason"] for event in events} == {"new.example"}
    core.client.faults.clear()
    path.rmdir()
    assert (await core.operate("GET", DOMAINS))[1] == {"domains": []}
    assert (await core.operate("POST", DOMAINS, HERE))[0] == 200


async def test_a_file_that_can_not_be_believed_stops_changes_and_lists_and_widens_nothing(tmp_path: Path) -> None:
    async with front_core(tmp_path, reaching(), workers=0) as core:
        agent, path = await core.agent(), tmp_path / "fronts" / "learned.json"
        assert (await core.operate("POST", DOMAINS, HERE))[0] == 200
        whole = path.read_bytes()
        path.write_bytes(whole[:-30])
        assert await reached(core, agent, {"host": "new.example"}) == ("new.example",)
        for method, body in (("GET", b""), ("POST", HERE), ("DELETE", HERE)):
            assert await core.operate(method, DOMAINS, body) == (503, {"error": "learned_rules_unavailable"})
        assert await core.operate("DELETE", DOMAINS + "/clear") == (503, {"error": "learned_rules_unavailable"})
        assert path.read_bytes() == whole[:-30], "what can't be read is not written over"
        assert [event["event_type"] for event in await core.events() if "Domain" in event["event_type"]] == [
            "DomainAdded"
        ]
        path.write_bytes(whole)
        assert await reached(core, agent, {"host": "new.example"}) == ()
        assert json.loads(path.read_text())["version"] == 1


async def test_a_clock_that_can_not_be_believed_changes_nothing(core: Core) -> None:
    assert (await core.operate("POST", DOMAINS, HERE))[0] == 200
    core.client.faults["UseProof"] = then(lambda: setattr(core.clock, "is_broken", True))
    for method in ("POST", "DELETE"):
        assert await core.operate(method, DOMAINS, HERE) == (503, {"error": "clock_error"})
        core.clock.is_broken = False
    core.client.faults.clear()
    assert len((await core.operate("GET", DOMAINS))[1]["domains"]) == 1
