"""gatectl desk on a terminal of its own, as its user has it: what stands on the screen, and what keys do."""

import os
import re
import signal
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from gateway_client import AgentClient, Held
from gateway_client.evidence.canonical import canonical_bytes, sha256

from tests.gatectl.test_terminal import EVIL, evil_answers
from tests.support.gatectl import SCRIPT, Gatectl, pointed_at
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.screen import END, ENTER, ESCAPE, Screen, on_screen
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

KEYS = "1-5 panes  r now  q quit"
BACK = "esc back"
READING = "a approve  d deny  ↑↓ space scroll  esc back"
PASTED = "\x1b[200~\u202egnp.exe[bold]\x1b[201~"
PLAN_HASH = "sha256:" + "0" * 64


@contextmanager
def desk(gatectl: Gatectl, columns: int = 80, lines: int = 24, program: Sequence[str] = (SCRIPT,)) -> Iterator[Screen]:
    with on_screen([*program, "desk", "--interval", "0.5"], gatectl.environ, columns, lines) as screen:
        yield screen


def left(screen: Screen) -> int:
    screen.press("q")
    return screen.end()


def wait_for_lines(screen: Screen, *begins: str, keys: str) -> None:
    """Until the first lines begin so, and the whole list of keys ends the last one: a frame comes in pieces."""

    def are_there(text: str) -> bool:
        lines = text.split("\n")
        return text.endswith(keys) and all(map(str.startswith, lines, begins))

    screen.wait_until(are_there, f"{begins} above {keys}")


def ends_at_line(number: int, keys: str, text: str) -> bool:
    """The terminal has so many lines, and the list of keys ends the last one."""
    lines = text.split("\n")
    return len(lines) == number and lines[-1].endswith(keys)


def newest(agent: AgentClient, amount: int) -> Held:
    answer = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": amount, "currency": "EUR"})
    assert isinstance(answer, Held)
    return answer


def test_a_held_call_is_approved_as_approvals_show_has_it(
    gate: Gateway, gatectl: Gatectl, agent: AgentClient, held: Held
) -> None:
    shown = gatectl.done("approvals", "show", held.approval_id).out.splitlines()
    with desk(gatectl, 200, 50) as screen:
        screen.wait_for("payment_transfer", held.approval_id, "plan")
        screen.press("a")
        text = screen.wait_for("approve payment_transfer for http://", "(context ", "y approve  n no")
        lines = [line.rstrip() for line in text.splitlines()]
        assert not [line for line in shown[1:-2] if line not in lines], "every fact, whole, as the command prints it"
        screen.press("y")
        done = screen.wait_for("executed", "verified", "approved by", "signed by", BACK)
        receipt = re.search(r"rcpt_[0-9a-f-]{36}", done)
        screen.press(ESCAPE)
        screen.wait_for("approve payment_transfer: executed", KEYS, gone=[held.approval_id])
        assert left(screen) == 0
    story = gatectl.done("why", held.approval_id).out
    assert receipt is not None
    assert receipt[0] in story
    assert gatectl.done("approvals", "show", held.approval_id, "--json").json["approval_signature"]


def test_a_held_call_is_denied_with_a_reason_that_its_agent_reads(gatectl: Gatectl, agent: AgentClient) -> None:
    held = newest(agent, 11_111)
    with desk(gatectl) as screen:
        screen.wait_for(held.approval_id[-8:], "11111")
        screen.press("d")
        screen.wait_for("reason, which the agent reads", "enter deny  esc no")
        screen.press("not today")
        screen.wait_for("not today")
        screen.press(ENTER)
        screen.wait_for("denied by dev: not today", "signed by")
        screen.press(ESCAPE)
        screen.wait_for(KEYS)
        screen.press("2")
        screen.wait_for("deny     payment_transfer", "not today")
        assert left(screen) == 0
    detail = gatectl.done("approvals", "show", held.approval_id, "--json").json
    assert (detail["state"], detail["deny_reason"]) == ("denied", "not today")


def test_a_call_is_found_by_its_trace_from_the_decisions_and_by_typing(gatectl: Gatectl, agent: AgentClient) -> None:
    done = agent.execute("text_digest", {"text": "to be found"})
    assert not isinstance(done, Held)
    with desk(gatectl, 120, 40) as screen:
        screen.wait_for("ACTION")
        screen.press("2")
        screen.wait_until(lambda text: text.split("\n")[3].endswith(done.trace_id), "the newest decision, first")
        screen.press(ENTER)
        screen.wait_for("text_digest 1.0.0 · low · allow", done.receipt_id, "rule allow", "prev_hash", KEYS)
        screen.press("/")
        screen.wait_for("ctrl+q quit", done.trace_id)
        screen.press("\x15")
        screen.wait_for("or the end of one")
        screen.press("rcpt_nothing", ENTER)
        screen.wait_for("receipt_not_found", gone=["text_digest 1.0.0"])
        screen.press("4")
        screen.wait_for("ctrl+q quit")
        screen.press("\x15")
        screen.wait_for("or the end of one")
        screen.press(done.receipt_id[-12:], ENTER)
        screen.wait_for("text_digest 1.0.0 · low · allow", f"trace         {done.trace_id}", KEYS)
        screen.press("/")
        screen.wait_for("ctrl+q quit")
        screen.press("\x11")
        assert screen.end() == 0


def test_a_session_is_revoked_once_a_person_has_said_yes(gate: Gateway, gatectl: Gatectl) -> None:
    agent = gate.agent(7)
    end = agent.session_id[-8:]
    with desk(gatectl) as screen:
        screen.press("5")
        screen.wait_for(end, "7 of 7", "x revoke")
        screen.press("x")
        screen.wait_for(f"revoke ses_…{end} of dev:anonymous for http://", "y revoke  n no")
        screen.press("n")
        screen.wait_for(KEYS, gone=["y revoke"])
        assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        screen.press("x")
        screen.wait_for("y revoke  n no")
        screen.press("y")
        screen.wait_for(f"revoke {agent.session_id}", gone=[f"ses_…{end}"])
        assert left(screen) == 0
    assert agent.execute("text_digest", {"text": "x"}).status_code == 401


def test_every_pane_fits_its_terminal_at_the_start_and_when_its_size_changes(gatectl: Gatectl, held: Held) -> None:
    with desk(gatectl, 80, 24) as screen:
        screen.wait_for(held.approval_id[-8:], "will send")
        for columns, lines in ((80, 24), (120, 40), (200, 50)):
            screen.resize(columns, lines)
            screen.wait_until(partial(ends_at_line, lines, KEYS), "the new size")
            panes = (
                ("2", "TIME", KEYS), ("3", "  status ", KEYS), ("5", "LEFT     PRINCIPAL", KEYS),
                ("4", "trace, receipt or approval", "ctrl+q quit"),
            )  # fmt: skip
            for key, first, keys in panes:
                screen.press(key)
                wait_for_lines(screen, "gatectl desk · ", " 1 Held", first, keys=keys)
            screen.press(ESCAPE)
            screen.wait_for(KEYS)
            screen.press("1")
            screen.wait_for("\nLEFT")
            screen.press(ENTER)
            screen.wait_for(READING, "will send")
            wait_for_lines(screen, "HELD  payment_transfer 1.0.0 · critical · expires in ", keys=f"\n{READING}")
            screen.press(ESCAPE)
            screen.wait_for(KEYS)
        assert left(screen) == 0


def of_production(**more: Any) -> dict[str, Any]:
    """A production gateway with one pending call."""
    shown = {
        "approval_id": "apr_1", "action_id": "pay", "state": "pending", "principal": "p", "plan_hash": PLAN_HASH,
        "request": {}, "request_json": "{}", "expires_at": "2100-01-01T00:00:00.000Z",
    }  # fmt: skip
    shown |= more
    hashed = {name: value for name, value in shown.items() if name not in {"state", "shown_hash", "approvals"}}
    detail = {"shown_hash": sha256(canonical_bytes(hashed))} | shown
    return {
        "GET /v1/admin/status": evil_answers()["GET /v1/admin/status"] | {"status": "ok", "weakened": []},
        "GET /v1/approvals": {"approvals": [shown], "count": 1, "total": 1},
        "GET /v1/approvals/apr_1": detail,
        "GET /v1/audit/events": {"events": [], "count": 0},
        "POST /v1/approvals/apr_1/deny": {"decision": "deny", "approval_id": "apr_1", "action_id": "pay",
                                          "trace_id": "trc_1", "denied_by": "alice", "deny_reason": "no"},
    }  # fmt: skip


def with_status(answers: dict[str, Any]) -> dict[str, Any]:
    return {name: (200, body) for name, body in answers.items()}


@contextmanager
def scripted(gatectl: Gatectl, answers: dict[str, Any], lines: int = 24) -> Iterator[tuple[Screen, ScriptedGateway]]:
    with (
        scripted_gateway(with_status(answers)) as server,
        desk(pointed_at(gatectl, server.url), 80, lines) as screen,
    ):
        yield screen, server


def decisions(server: ScriptedGateway) -> list[str]:
    return [one for one in server.requests if one.startswith("POST ")]


def test_a_gateway_that_is_gone_is_said_to_be_away_and_the_desk_comes_back_by_itself(gatectl: Gatectl) -> None:
    nothing = {"GET /v1/approvals": {"approvals": [], "count": 0, "total": 0}}
    with ExitStack() as first:
        port = free_port()
        server = first.enter_context(scripted_gateway(with_status(of_production() | nothing), port=port))
        with desk(pointed_at(gatectl, server.url)) as screen:
            screen.wait_for("nothing waits", " ok ")
            first.close()
            screen.wait_for("NO ANSWER", "no answer since ", "unreachable", KEYS)
            screen.press("3")
            screen.wait_for("no answer since ", "key-value store")
            screen.press("1")
            status = of_production()["GET /v1/admin/status"]
            not_yet = {"GET /v1/admin/status": [(503, {"error": "internal"}), (200, status)]}
            with scripted_gateway(with_status(of_production()) | not_yet, port=port):
                screen.wait_for(" ok ", "pay", "input", gone=["NO ANSWER", "no answer since"])
                assert left(screen) == 0


def test_a_denial_for_another_gateway_than_one_of_gateway_dev_is_asked_about(gatectl: Gatectl) -> None:
    with scripted(gatectl, of_production()) as (screen, server):
        screen.wait_for("pay", "input")
        screen.press("d")
        screen.wait_for("reason, which")
        screen.press("no", ENTER)
        screen.wait_for(f"deny pay for {server.url} (environment)?", "y deny  n no")
        screen.press("n")
        screen.wait_for("a approve  d deny")
        screen.press("d")
        screen.wait_for("no", "enter deny")
        screen.press(ENTER)
        screen.wait_for("y deny  n no")
        assert not decisions(server)
        screen.press("y")
        screen.wait_for("denied by alice: no")
        assert decisions(server) == ["POST /v1/approvals/apr_1/deny"]


def test_nothing_is_approved_whose_plan_has_not_been_on_the_screen_to_its_end(gatectl: Gatectl) -> None:
    long = of_production(request_json=f'{{"text":"{"x" * 3000}the end"}}')
    with scripted(gatectl, long) as (screen, server):
        screen.wait_for("xxx")
        screen.press("a")
        screen.wait_for("NOT ALL OF IT WAS SHOWN: ", "more below")
        screen.press("y", "y")
        screen.press(END)
        screen.wait_for("approve pay for", "the end", gone=["NOT ALL"])
        assert not decisions(server)
        screen.press("y")
        screen.wait_for("approve pay: already_decided: ", BACK)
        assert decisions(server) == ["POST /v1/approvals/apr_1/approve"]


def test_a_plan_with_a_wrong_hash_is_neither_shown_nor_signed(gatectl: Gatectl) -> None:
    with scripted(gatectl, of_production(shown_hash=PLAN_HASH)) as (screen, server):
        screen.wait_for("pay", "input")
        screen.press("a")
        screen.wait_for("shown_mismatch", BACK)
        screen.press("y", "a", "d")
        screen.wait_for("shown_mismatch", BACK)
        assert not decisions(server)


def test_the_approvals_that_are_given_are_counted_and_a_decision_of_another_operator_names_that_one(
    gatectl: Gatectl,
) -> None:
    count = {"given": 1, "needed": 2, "groups": {"finance": 1}, "by": [{"approved_by": "ada"}]}
    answers = of_production(approvals=count)
    with scripted(gatectl, answers) as (screen, server):
        screen.wait_for(
            "HELD  pay · 1 of 2 approvals (1 of finance): ada", "approvals   1 of 2 approvals (1 of finance): ada"
        )
        screen.press("a")
        screen.wait_for("approve pay for")
        lost = answers["GET /v1/approvals/apr_1"] | {"state": "denied", "claimed_by": "bob"}
        server.answers["GET /v1/approvals/apr_1"] = (200, lost)
        screen.press("y")
        screen.wait_for("already decided: denied by bob", BACK)


def test_no_pane_shows_what_could_deceive(gatectl: Gatectl) -> None:
    evil = evil_answers()
    detail = evil["GET /v1/approvals/a"] | {"approval_id": "a", "state": "pending", "request_json": EVIL}
    answers = evil | {
        "GET /v1/approvals": {"approvals": [detail], "count": 1, "total": 9},
        "GET /v1/approvals/a": detail,
        "GET /v1/audit/events": {
            "events": [evil["GET /v1/audit/events"]["events"][0] | {"trace_id": EVIL, "timestamp": EVIL}],
            "count": 1,
        },
        "POST /v1/approvals/a/deny": evil["POST /v1/approvals/a/deny"],
    }
    escaped = "\\u001b[31m\\u202egnp.exe"
    with scripted(gatectl, answers) as (screen, _):
        steps: tuple[tuple[list[str], str], ...] = (
            ([], "will send"), (["2"], "\n\\u001b[31m"), ([ENTER], "\ngatectl: "), (["3"], "key-value store"),
            (["1"], "LEFT"), ([ENTER], READING), (["d"], "enter deny"), ([PASTED], "\\u202egnp.exe[bold]"),
        )  # fmt: skip
        for keys, there in steps:
            screen.press(*keys)
            text = screen.wait_for(there, escaped)
            assert not [one for one in text if one != "\n" and unicodedata.category(one) in {"Cc", "Cf", "Zl", "Zp"}]
        screen.press(ENTER)
        screen.wait_for("y deny  n no")
        screen.press("y")
        screen.wait_for("denied by", BACK)
        raw = re.sub("\x1b\\]22;[a-z]+\x07", "", screen.raw.decode("utf-8", "replace"))  # the shape of the pointer
        assert "[bold]" in screen.text, "markup of others is text"
        assert not re.findall("\x9b|\u202e|\u2028|\u200b|\x07", raw)
        assert "[31m\\u202e" in raw
        assert "\x1b[31m\\u202e" not in raw


def test_without_a_terminal_or_without_textual_it_says_what_to_do(gatectl: Gatectl) -> None:
    piped, as_json = gatectl.here("desk"), gatectl.on_terminal("desk", "--json")
    assert (piped.code, piped.out) == (2, "")
    assert piped.err.startswith("gatectl: usage: the desk needs a terminal - ")
    assert as_json.code == 2
    code = "import sys; sys.modules['textual'] = None; from gateway_client.cli.main import main; main()"
    bare = gatectl.on_terminal("desk", program=[sys.executable, "-c", code])
    assert bare.code == 2
    assert "gatectl: no_textual: " in bare.out
    assert "pip install './sdk[desk]'" in bare.out


def test_every_way_to_quit_ends_it_at_once(gatectl: Gatectl) -> None:
    with desk(gatectl) as screen:
        screen.wait_for("ACTION")
        screen.press("\x03")
        assert screen.end() == 130
    for sent in (signal.SIGTERM, signal.SIGHUP):
        with desk(gatectl) as screen:
            screen.wait_for("ACTION")
            os.kill(screen.pid, sent)
            assert screen.end() != 0
