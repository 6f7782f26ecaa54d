"""The policy process over its real channel: what it answers, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import encode_frame
from ipc.limits import MAX_POLICY_FRAME
from ipc.messages.deciding import Ask, LoadPolicy, PolicyCompiled, UsePolicy
from ipc.process.exits import Exit
from tests.support.policy import (
    ALLOW_ALL,
    LOOP_ON_SPIN,
    PolicyPeer,
    document,
    end,
    question,
    sources,
    start_policy_process,
)

CRASHING = "decision := " + "[" * 100_000 + "]" * 100_000


@pytest.fixture
def peer() -> Iterator[PolicyPeer]:
    peer = PolicyPeer()
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def lasting() -> Iterator[PolicyPeer]:
    """One process for all tests that leave it as able as it was."""
    peer = PolicyPeer()
    yield peer
    peer.close()


def exit_code(peer: PolicyPeer) -> int:
    return peer.process.wait(120)


def asked(peer: PolicyPeer, question_id: int, **changes: object) -> dict[str, object]:
    peer.channel.send(Ask(question_id, question(**changes).as_input()))
    verdict = peer.verdict()
    assert verdict.question_id == question_id
    assert verdict.document is not None, verdict.error
    decision: dict[str, object] = json.loads(verdict.document)
    return decision


def test_a_policy_that_compiles_answers_questions_after_it_was_put_in_force(lasting: PolicyPeer) -> None:
    assert lasting.load(ALLOW_ALL) is None
    assert asked(lasting, 1)["allow"] is True


def test_questions_are_answered_in_order(lasting: PolicyPeer) -> None:
    assert lasting.load(sources(f"decision := {document(rule='input.action_id')}")) is None
    for number in range(64):
        lasting.channel.send(Ask(number, question(action_id=f"a{number}").as_input()))
    for number in range(64):
        verdict = lasting.verdict()
        assert verdict.question_id == number
        assert verdict.document is not None
        assert json.loads(verdict.document)["rule"] == f"a{number}"


def test_a_refused_candidate_leaves_the_active_policy_in_force(lasting: PolicyPeer) -> None:
    assert lasting.load(ALLOW_ALL) is None
    error = lasting.load(sources("decision := {", version="t2"), load_id="load-2")
    assert error is not None
    assert error.startswith("gateway.rego:5: ")
    assert asked(lasting, 1)["rule"] == "test"


def test_a_candidate_counts_only_from_use_policy_on(lasting: PolicyPeer) -> None:
    assert lasting.load(ALLOW_ALL) is None
    second = sources(f"decision := {document(rule=json.dumps('second'))}")
    lasting.channel.send(LoadPolicy("load-2", second.modules, second.data))
    assert lasting.channel.receive() == PolicyCompiled("load-2", None, reads=())
    assert asked(lasting, 1)["rule"] == "test"
    lasting.channel.send(UsePolicy("load-2"))
    assert asked(lasting, 2)["rule"] == "second"


def test_a_policy_that_can_not_be_remembered_says_why(lasting: PolicyPeer) -> None:
    lasting.channel.send(LoadPolicy("load-1", ALLOW_ALL.modules, ALLOW_ALL.data))
    said = "data.gateway.decision uses input as a whole"
    assert lasting.channel.receive() == PolicyCompiled("load-1", None, None, said)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("other := 1", "undefined"),
        ("decision := 1 if input.owner", "Expected `object`"),
        ('decision := 1 if input.owner == "x"', "undefined"),
        ("decision := true", "Expected `object`"),
        (f"decision := {document(allow=json.dumps('yes'))}", "decision.allow"),
        (f"decision := {document(allow='1')}", "decision.allow"),
        (f"decision := {document(requires_approval='null')}", "decision.requires_approval"),
        (f"decision := {document(deny_reason='null')}", "decision.deny_reason"),
        (f"decision := {document(allowed_sinks='[1]')}", "decision.allowed_sinks"),
        (f"decision := {document(policy_version='1')}", "decision.policy_version"),
        (f"decision := {document(policy_version='data.policy_version')}", "undefined"),
        ('decision := {"allow": true}', "missing required field"),
        (f"decision := {document()} if input.owner\n\ndecision := {document()}", ""),
        (f"decision := {document()}\n\ndecision := {document(allow='false')} if input.owner", "eval_conflict_error"),
        (f"decision := {document()} if input.budgets_before.calls_remaining != 0", "a spent budget"),
    ],
)
def test_a_candidate_that_compiles_but_does_not_decide_is_refused(lasting: PolicyPeer, body: str, problem: str) -> None:
    error = lasting.load(sources(body))
    if problem == "":
        assert error is None  # the same value twice is no conflict
    else:
        assert error is not None
        assert problem in error


def test_the_probes_use_the_principals_of_the_data(lasting: PolicyPeer) -> None:
    conflict = f'decision := {document()}\n\ndecision := {document(allow="false")} if input.principal == "billing"'
    assert lasting.load(sources(conflict)) is None
    data = json.dumps({"acl": {"billing": {"actions": ["pay"]}}})
    error = lasting.load(sources(conflict, data), load_id="load-2")
    assert error is not None
    assert 'asked about "billing calls pay"' in error


def test_an_evaluation_that_fails_is_an_error_and_the_next_one_is_answered(lasting: PolicyPeer) -> None:
    body = f'decision := {document()} if not input.action_id == "odd"\nelse := {document()} if 1 / 0 == 1'
    assert lasting.load(sources(body)) is None
    lasting.channel.send(Ask(1, question(action_id="odd").as_input()))
    verdict = lasting.verdict()
    assert (verdict.document, verdict.error) == (None, "eval_builtin_error: divide by zero")
    assert asked(lasting, 2)["allow"] is True


def test_a_decision_too_large_for_its_frame_is_an_error(lasting: PolicyPeer) -> None:
    assert lasting.load(sources(f"decision := {document(rule='input.action_id')}")) is None
    lasting.channel.send(Ask(1, question(action_id="x" * 300_000).as_input()))
    assert "characters" in str(lasting.verdict().error)
    assert asked(lasting, 2)["allow"] is True


def test_an_input_that_is_no_json_is_an_error(lasting: PolicyPeer) -> None:
    assert lasting.load(ALLOW_ALL) is None
    lasting.channel.send(Ask(1, {"a": 2**64 - 1}))
    assert lasting.verdict().error == "an integer exceeds 64 bits"


def test_an_evaluation_that_hangs_ends_the_process(peer: PolicyPeer) -> None:
    assert peer.load(LOOP_ON_SPIN) is None
    peer.channel.send(Ask(1, question(action_id="loop").as_input()))
    assert exit_code(peer) == -signal.SIGPROF


def test_a_candidate_that_hangs_ends_the_process(peer: PolicyPeer) -> None:
    body = (
        "decision := "
        + document()
        + " if count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); x == y]) > 0"
    )
    with pytest.raises(ChannelClosed):
        peer.load(sources(body))
    assert exit_code(peer) == -signal.SIGPROF


def test_a_candidate_that_crashes_the_evaluator_ends_the_process_and_nothing_else(peer: PolicyPeer) -> None:
    with pytest.raises((ChannelClosed, ConnectionError)):
        peer.load(sources(CRASHING))
    assert exit_code(peer) == -signal.SIGSEGV


def test_print_in_a_policy_does_not_reach_standard_output(peer: PolicyPeer) -> None:
    assert peer.load(sources(f'decision := {document()} if print("hello")')) is None
    asked(peer, 1)
    peer.sock.close()
    assert peer.process.communicate(timeout=120)[0] == b""


@pytest.mark.parametrize(
    "messages",
    [
        [Ask(1, {})],
        [UsePolicy("load-1")],
        [LoadPolicy("load-1", ALLOW_ALL.modules, "{}"), UsePolicy("load-2")],
        [LoadPolicy("load-1", ALLOW_ALL.modules, "{}"), UsePolicy("load-1"), UsePolicy("load-1")],
        [LoadPolicy("load-1", {"a.rego": "package a\n"}, "{}"), UsePolicy("load-1")],
    ],
)
def test_a_front_that_breaks_the_protocol_is_left(
    peer: PolicyPeer, messages: list[Ask | UsePolicy | LoadPolicy]
) -> None:
    for message in messages:
        peer.sock.sendall(encode_frame(message, MAX_POLICY_FRAME))
    assert exit_code(peer) == Exit.PROTOCOL


@pytest.mark.parametrize("frame", [b"\xff\xff\xff\xff", b"\0\0\0\4junk", b"\0\0\0\0", b"\0\0\0\1\x80"])
def test_bytes_that_are_no_message_end_the_process(peer: PolicyPeer, frame: bytes) -> None:
    peer.sock.sendall(frame)
    assert exit_code(peer) == Exit.PROTOCOL


def test_a_closed_channel_ends_the_process(peer: PolicyPeer) -> None:
    peer.sock.close()
    assert exit_code(peer) == Exit.ORPHANED


def test_a_channel_cut_inside_a_frame_ends_the_process(peer: PolicyPeer) -> None:
    peer.sock.sendall(b"\0\0\0\x10half")
    peer.sock.close()
    assert exit_code(peer) == Exit.PROTOCOL


def test_a_process_whose_parent_is_another_one_leaves_at_once() -> None:
    sock, process = start_policy_process(parent=os.getpid() + 1)
    with sock:
        try:
            assert process.wait(120) == Exit.ORPHANED
        finally:
            end(process)


def test_the_process_shows_its_name_and_holds_no_more_descriptors_than_its_own(peer: PolicyPeer) -> None:
    assert peer.load(ALLOW_ALL) is None
    listed = psutil.Process(peer.process.pid)
    assert " ".join(listed.cmdline()).strip() == "gateway: policy 7"
    if os.getuid() == 0:
        assert len(os.listdir(f"/proc/{peer.process.pid}/fd")) == 4  # stdin, stdout, stderr, channel


def test_an_unknown_command_line_is_refused() -> None:
    done = subprocess.run([sys.executable, "-m", "workers.rego.main"], capture_output=True, timeout=120, check=False)
    assert done.returncode == Exit.USAGE
