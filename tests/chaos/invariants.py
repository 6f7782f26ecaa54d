"""The invariants after any run: of the ledger's file, of the clients' answers, and of the upstream's requests.

Looked at with the gateway stopped, by the file's own tables: nothing here asks the code that is under test, but for
`gateway ledger verify`, which walks chain and tree.
"""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.chaos.load import BUDGET, Answer, Seen
from tests.chaos.world import World
from tests.support.manifests import REPOSITORY
from tests.support.upstream import Upstream
from tests.support.webhook_receiver import Receiver

HTTP_ACTIONS = ("http_post", "payment_transfer", "any_host")


class Ledger:
    """The evidence, read whole."""

    def __init__(self, file: Path) -> None:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            ask = connection.execute
            self.events = [json.loads(row[0]) for row in ask("SELECT bytes FROM events ORDER BY seq")]
            self.receipts = [json.loads(row[0]) for row in ask("SELECT bytes FROM receipts ORDER BY seq")]
            self.intents = ask("SELECT intent_id, trace_id, action_id, approval_id, context FROM intents").fetchall()
            self.unresolved = {row[0] for row in ask("SELECT intent_id FROM unresolved")}
            waiting = "SELECT event_id, endpoint FROM outbox UNION ALL SELECT event_id, endpoint FROM given_up"
            self.told_later = ask(waiting).fetchall()
            self.budgets = dict(ask("SELECT session_id, remaining FROM budgets").fetchall())
        self.by_trace: dict[str, list[dict[str, Any]]] = {}
        for event in self.events:
            if event["event_type"] == "ActionCall":
                self.by_trace.setdefault(event["trace_id"], []).append(event)


def problems(world: World, seen: Seen, up: Upstream, receiver: Receiver) -> Iterator[str]:
    """Every invariant that does not hold."""
    yield from seen.faults
    yield from _verified(world, seen)
    ledger = Ledger(world.state / "ledger.sqlite3")
    yield from _one_event_a_call(ledger, seen.answers)
    yield from _one_receipt_an_execution(ledger, seen)
    yield from _effects(ledger, seen, up, world.state / "files")
    yield from _budgets(ledger, seen)
    yield from _approvals(ledger, seen)
    yield from _deliveries(ledger, receiver)


def _deliveries(ledger: Ledger, receiver: Receiver) -> Iterator[str]:
    """Each execution was delivered to the endpoint that lives, still waits, or is kept as given up."""
    told = {*receiver.ids, *(event_id for event_id, endpoint in ledger.told_later if endpoint == "living")}
    executed = [event["event_id"] for events in ledger.by_trace.values() for event in events if "receipt_id" in event]
    if lost := [event_id for event_id in executed if event_id not in told]:
        yield f"{len(lost)} of {len(executed)} executions were told to nobody: {lost[:3]}"
    bodies = {(one.headers["webhook-id"], one.body) for one in receiver.received}
    if len(bodies) != len({event_id for event_id, _ in bodies}):
        yield "a message was sent again with another body"


def _verified(world: World, seen: Seen) -> Iterator[str]:
    """Check the chain, the tree, the signatures, and that the log extends each published checkpoint."""
    keys = world.folder / "keys.json"
    keys.write_text(json.dumps(world.receipt_keys))
    command = [sys.executable, "-m", "supervisor.cli", "ledger", "verify", str(world.state / "ledger.sqlite3")]
    command += ["--keys", str(keys), "--checkpoint", str(world.state / "checkpoints")]
    for number, told in enumerate(seen.checkpoints[-20:]):
        kept = world.folder / f"kept-{number}.json"
        kept.write_text(json.dumps(told))
        command += ["--checkpoint", str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    if done.returncode != 0:
        yield f"ledger verify ended with {done.returncode}: {done.stdout} {done.stderr}"


def _one_event_a_call(ledger: Ledger, answers: list[Answer]) -> Iterator[str]:
    counted: Counter[str] = Counter()
    for event in ledger.events:
        if event["event_type"] == "ActionCall" and "attempts" in event:
            counted[event.get("error_code", "")] += event["attempts"]["count"]
    for answer in answers:
        events = ledger.by_trace.get(answer.trace_id, [])
        if answer.status == 202:  # the events of its approval have the trace of the call
            ends = [event for event in events if event["decision"] != "pending_approval"]
            if len(ends) > 1:
                yield f"{answer.kind} {answer.mark} ended {len(ends)} times"
            events = [event for event in events if event not in ends]
        least = 0 if _may_be_unwritten(answer) or counted[answer.body.get("error", "")] else 1
        if not least <= len(events) <= 1:
            yield f"{answer.kind} {answer.mark} ({answer.code}) has {len(events)} events"
        elif events and not _agree(answer, events[0]):
            yield f"{answer.kind} {answer.mark} ({answer.code}) has the event {events[0]}"


def _may_be_unwritten(answer: Answer) -> bool:
    """Where evidence can't be written nothing is answered but that; unauthenticated requests are counted in sums."""
    return answer.status in (401, 429) or answer.status >= 500


def _agree(answer: Answer, event: dict[str, Any]) -> bool:
    if answer.status == 200:
        return bool(event["decision"] == "allow" and event["receipt_id"] == answer.body["receipt_id"])
    if answer.status == 202:
        return bool(event["approval_id"] == answer.body["approval_id"])
    return answer.status != 403 or event["decision"] in ("deny", "error")


def _one_receipt_an_execution(ledger: Ledger, seen: Seen) -> Iterator[str]:
    ended = Counter(event["intent_id"] for event in ledger.events if event.get("intent_id"))
    named = [event["receipt_id"] for event in ledger.events if event.get("receipt_id") and event.get("intent_id")]
    intents = {intent_id for intent_id, *_ in ledger.intents}
    yield from (f"{intent_id} ended {times} times" for intent_id, times in ended.items() if times > 1)
    yield from (f"{intent_id} has ended and waits for its end" for intent_id in ledger.unresolved & set(ended))
    yield from (f"{intent_id} has neither an end nor a place among the unresolved" for intent_id in
                intents - set(ended) - ledger.unresolved)  # fmt: skip
    known = {receipt["receipt_id"] for receipt in ledger.receipts}
    if len(ledger.receipts) != len(known) or known != set(named) or len(named) != len(known):
        yield f"{len(ledger.receipts)} receipts, and events name {len(named)}"
    for answer in (*seen.answers, *seen.approved):
        if answer.status == 200 and "receipt_id" in answer.body and answer.body["receipt_id"] not in known:
            yield f"{answer.kind} {answer.mark} was answered with a receipt that nobody keeps"


def _effects(ledger: Ledger, seen: Seen, up: Upstream, files: Path) -> Iterator[str]:
    marks = effects_of(up)
    yield from (f"the effect of {mark} happened {times} times" for mark, times in marks.items() if times > 1)
    written = {file.name for file in files.rglob("n*c*")} if files.is_dir() else set()
    for answer in seen.answers:
        if answer.status == 200 and answer.kind in ("post", "slow", "learned") and not marks[answer.mark]:
            yield f"{answer.kind} {answer.mark} was answered and has no effect"
        if answer.status == 200 and answer.kind == "file" and answer.mark not in written:
            yield f"file {answer.mark} was answered and is not there"
        if answer.status in (202, 401, 403) and answer.kind == "denied" and marks[answer.mark]:
            yield f"{answer.mark} was refused and has an effect"
    sent = sum(action_id in HTTP_ACTIONS for _, _, action_id, *_ in ledger.intents)
    if sum(marks.values()) > sent:
        yield f"{sum(marks.values())} effects of {sent} intents"
    wrote = sum(action_id == "file_write" for _, _, action_id, *_ in ledger.intents)
    if len(written) > wrote:
        yield f"{len(written)} files of {wrote} intents"


def effects_of(up: Upstream) -> Counter[str]:
    """How often the upstream has the effect of each call, by its mark."""
    return Counter(_mark(one.path, one.body) for one in list(up.seen))


def _mark(path: str, body: bytes) -> str:
    """The call that a request of the upstream is the effect of."""
    if path == "/v1/transfers":
        return str(json.loads(body)["to"])
    return path.rpartition("?")[2] if "?" in path else path.rpartition("/")[2]


def _budgets(ledger: Ledger, seen: Seen) -> Iterator[str]:
    """The remaining budget of a session is its initial budget minus its intents, except those that never reached a
    worker."""
    ended = {event["intent_id"] for event in ledger.events if event.get("intent_id")}
    of_intent = {one["intent_id"]: one.get("session_id") for one in ledger.events if one.get("receipt_id")}
    unresolved: Counter[str] = Counter()
    for intent_id, _, _, _, context in ledger.intents:
        if intent_id not in ended and context is not None:
            unresolved[_session_of(context)] += 1
    used = Counter(of_intent.values())
    for session_id, begun in seen.budgets.items():
        if session_id not in ledger.budgets:
            continue  # the session is over, and forgotten
        spent = begun - ledger.budgets[session_id]
        if spent != used[session_id] + unresolved[session_id] or not 0 <= spent <= BUDGET:
            intents = f"{used[session_id]} ended and {unresolved[session_id]} open intents"
            yield f"{session_id} has spent {spent} for {intents}"


def _session_of(context: bytes) -> str:
    text = context.decode(errors="replace")
    place = text.find("ses_")
    return text[place : place + 40] if place >= 0 else ""


def _approvals(ledger: Ledger, seen: Seen) -> Iterator[str]:
    used = Counter(approval_id for _, _, _, approval_id, _ in ledger.intents if approval_id)
    yield from (f"{approval_id} was used {times} times" for approval_id, times in used.items() if times > 1)
    given = Counter(answer.mark for answer in seen.approved if answer.kind == "approve" and answer.status == 200)
    yield from (f"{approval_id} was approved {times} times" for approval_id, times in given.items() if times > 1)
    denied = {answer.mark for answer in seen.approved if answer.kind == "deny" and answer.status == 200}
    yield from (f"{approval_id} was denied and used" for approval_id in denied & set(used))
