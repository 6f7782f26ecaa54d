"""Real workers: what they hold, how they serve, how they leave."""

import json
import os
import resource
import socket
import struct
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ipc.blocking import BlockingChannel
from ipc.exits import Exit
from ipc.framing import Decoder, encode_frame
from ipc.limits import MAX_CALL_FRAME
from ipc.messages import (
    Call,
    FrontToWorker,
    GrantKeys,
    Message,
    ModuleFile,
    Observation,
    Result,
    Retire,
    Verification,
    Welcome,
    WorkerExited,
    WorkerReady,
    WorkerToFront,
)
from ipc.plan import Limits, Plan, PlannedRequest, SecretUse
from ipc.sessions import FRONT_TO_WORKER
from tests.support.worker_plans import Signer, builtin, digest_of, file_plan, http_plan, make_plan, text
from tests.support.worker_template import Template, Worker, has_ended, kill, template
from tests.support.worker_upstream import ok, upstream
from workers.sandbox.profiles import WORKER_DATA_BYTES
from workers.worker import _send_result

SIGNER = Signer()


def born(running: Template, profile: str = "compute") -> Worker:
    worker = running.spawn(profile)
    worker.welcome(SIGNER.jwks)
    return worker


def plan_for(name: str, request: object, **changes: Any) -> Plan:
    return make_plan(provider_module_digest=digest_of(builtin(name)), request=text(request), **changes)


def exit_status(running: Template, worker: Worker) -> int:
    while (exited := running.receive(WorkerExited)).worker_id != worker.worker_id:
        pass
    return exited.status


@pytest.mark.parametrize("profile", ["compute", "http", "fs"])
def test_a_worker_says_who_it_is(running: Template, profile: str) -> None:
    worker = born(running, profile)
    assert (worker.ready.worker_id, worker.ready.pid, worker.ready.profile) == (worker.worker_id, worker.pid, profile)
    assert "".join(psutil.Process(worker.pid).cmdline()) == f"gateway: worker {profile} {worker.worker_id}"


@pytest.mark.parametrize("profile", ["compute", "http", "fs"])
def test_a_worker_holds_its_channel_and_nothing_else(running: Template, profile: str) -> None:
    other = born(running)
    worker = born(running, profile)
    found = {int(name): os.readlink(f"/proc/{worker.pid}/fd/{name}") for name in os.listdir(f"/proc/{worker.pid}/fd")}
    assert [found.pop(number) for number in (0, 1)] == ["/dev/null", "/dev/null"]
    assert found.pop(2).endswith("template.log")
    assert len(found) == 1
    (channel,) = found.values()
    assert channel.startswith("socket:")
    assert channel not in [os.readlink(f"/proc/{other.pid}/fd/{name}") for name in os.listdir(f"/proc/{other.pid}/fd")]


def test_a_worker_keeps_no_descriptor_of_a_call(running: Template, tmp_path: Path) -> None:
    worker = born(running, "fs")
    plan = file_plan(tmp_path, request=text({"path": "a/b", "content": "x"}), verifier_kind="fs_hash")
    before = len(os.listdir(f"/proc/{worker.pid}/fd"))
    for _ in range(3):
        assert worker.call(SIGNER.call(plan)).outcome == "success"
    assert len(os.listdir(f"/proc/{worker.pid}/fd")) == before


def test_the_walls_stand_before_the_first_plan(running: Template) -> None:
    worker = born(running)
    process = psutil.Process(worker.pid)
    assert process.rlimit(resource.RLIMIT_CORE) == (0, 0)
    assert process.rlimit(resource.RLIMIT_DATA) == (WORKER_DATA_BYTES, WORKER_DATA_BYTES)
    assert process.rlimit(resource.RLIMIT_NOFILE) == (8, 8)
    status = dict(
        line.split(":\t") for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines() if ":\t" in line
    )
    assert status["NoNewPrivs"] == "1"
    assert Path(f"/proc/{worker.pid}/environ").stat().st_uid == 0


def test_a_call_through_the_channel_gives_a_result(running: Template) -> None:
    result = born(running).call(SIGNER.call(plan_for("text_digest", {"text": "hello"}), "call-7"))
    assert (result.call_id, result.outcome, result.retiring) == ("call-7", "success", False)
    assert result.output is not None
    assert json.loads(result.output)["bytes"] == 5


def test_one_worker_serves_calls_of_every_outcome_in_a_row(running: Template) -> None:
    worker = born(running)
    clock = {"required_imports": ("clock",)}
    plans = [
        (plan_for("echo", {}), "success"),
        (plan_for("spin", {"fuel": 10**9}, **clock), "fuel"),
        (plan_for("spin", {"seconds": 5}, **clock, limits=Limits(fuel=2**60, timeout_seconds=0.1)), "timeout"),
        (plan_for("spin", {"memory_mb": 500}, **clock), "provider_error"),
        (plan_for("spin", {"memory_mb": -1}, **clock), "provider_error"),
        (plan_for("echo", []), "bad_output"),
        (make_plan(provider_module_digest=digest_of(b"")), "module_missing"),
        (plan_for("echo", {}, profile="fs"), "grant_refused"),
    ]
    for plan, outcome in plans * 2:
        assert worker.call(SIGNER.call(plan)).outcome == outcome


def test_a_file_action_works_in_its_own_profile(running: Template, tmp_path: Path) -> None:
    plan = file_plan(tmp_path, request=text({"path": "a/b", "content": "x"}), verifier_kind="fs_hash")
    result = born(running, "fs").call(SIGNER.call(plan))
    assert (result.outcome, result.verification.outcome) == ("success", "verified")
    assert (tmp_path / "a" / "b").read_text() == "x"


def test_an_http_action_works_in_its_own_profile_and_its_secret_stays_there(running: Template) -> None:
    planned = PlannedRequest("POST", "http://upstream.test/x", (), "{}")
    call = {"method": "POST", "url": planned.url, "headers": [], "body": "{}"}
    with upstream(ok(b"{}", "201 Created")) as up:
        plan = http_plan(
            address=up.address, provider_module_digest=digest_of(builtin("http")), http_request=planned,
            provider_input=text({"request": {}, "call": call}), verifier_kind="http_status",
            secrets=(SecretUse("token", header="X-Token"),),
        )  # fmt: skip
        result = born(running, "http").call(SIGNER.call(plan, secrets={"token": "s3cret-value"}))
    assert (result.outcome, result.verification.outcome) == ("success", "verified")
    assert b"x-token: s3cret-value" in up.requests[0]
    assert "s3cret-value" not in repr(result)


def test_a_result_too_large_for_a_frame_is_reported_instead() -> None:
    ours, theirs = socket.socketpair()
    channel: BlockingChannel[Any] = BlockingChannel(
        theirs, FrontToWorker, table=FRONT_TO_WORKER, start="new", cap_in=MAX_CALL_FRAME, cap_out=2000
    )  # fmt: skip
    call = SIGNER.call(plan_for("echo", {}))
    channel.send(WorkerReady("w", 1, "compute"))
    for message in (Welcome(SIGNER.jwks), call):
        ours.sendall(encode_frame(message, MAX_CALL_FRAME))
        channel.receive()
    ours.recv(5000)
    seen = tuple(Observation("http", f"GET http://a.test/{number}", ok=True) for number in range(100))
    whole = Result(call.call_id, "success", "x" * 5000, None, Verification("skipped"), seen, 5, 5, 100)
    with ours:
        _send_result(channel, call, whole, is_last=True)
        decoder: Decoder[Result] = Decoder(WorkerToFront, 2000)
        decoder.feed(ours.recv(5000))
        found = decoder.next_message()
    channel.close()
    assert found is not None
    assert (found.outcome, found.output, found.retiring) == ("bad_output", None, True)
    assert found.io_calls == 100


def test_a_worker_that_has_served_its_share_says_so_and_leaves(tmp_path: Path) -> None:
    with template(tmp_path, recycle_after_calls=3) as running:
        running.load(ModuleFile("builtin:echo", None, ()))
        worker = born(running)
        call = SIGNER.call(plan_for("echo", {}))
        assert [worker.call(call).retiring for _ in range(3)] == [False, False, True]
        assert exit_status(running, worker) == Exit.RECYCLED


def test_a_retired_worker_leaves_recycled(running: Template) -> None:
    worker = born(running)
    worker.channel.send(Retire())
    assert exit_status(running, worker) == Exit.RECYCLED


def test_a_worker_whose_front_is_gone_leaves(running: Template) -> None:
    worker = born(running)
    worker.channel.close()
    assert exit_status(running, worker) == Exit.ORPHANED


def test_a_worker_whose_front_is_gone_before_welcome_leaves(running: Template) -> None:
    worker = running.spawn()
    worker.channel.close()
    assert exit_status(running, worker) == Exit.ORPHANED


def test_a_worker_killed_in_the_middle_of_a_call_is_reported_and_the_next_one_serves(running: Template) -> None:
    worker = born(running)
    plan = plan_for(
        "spin", {"seconds": 3600}, required_imports=("clock",), limits=Limits(fuel=2**62, timeout_seconds=3600.0)
    )
    worker.channel.send(SIGNER.call(plan))
    process = psutil.Process(worker.pid)
    deadline = time.monotonic() + 60
    while sum(process.cpu_times()[:2]) < 0.1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    kill(worker.pid)
    assert exit_status(running, worker) == -9
    assert born(running).call(SIGNER.call(plan_for("echo", {}))).outcome == "success"


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", MAX_CALL_FRAME + 1),
        b"\xff\xff\xff\xff",
        b"\0\0\0\x03abc",
        b"\0\0\0\x01\xc0",
        b"\0\0\0\x0f\x81\xa4type\xa8WhoKnows",
        b"\0\0\0\x0d\x81\xa4type\xa6Result",
        b"\0\0\0\0",
        b"\0\0\0\x20" + b"\x91" * 32,
    ],
    ids=["over the cap", "endless", "garbage", "nil", "unknown", "other direction", "empty", "nested"],
)
@pytest.mark.parametrize("is_welcomed", [False, True])
def test_bytes_that_are_no_message_end_the_worker(running: Template, data: bytes, is_welcomed: bool) -> None:
    worker = born(running) if is_welcomed else running.spawn()
    worker.raw(data)
    assert exit_status(running, worker) == Exit.PROTOCOL


def test_half_a_frame_and_then_the_end_is_a_broken_protocol(running: Template) -> None:
    worker = born(running)
    worker.raw(b"\0\0\1\0half")
    worker.sock.shutdown(socket.SHUT_WR)
    assert exit_status(running, worker) == Exit.PROTOCOL


def test_a_worker_verifies_with_the_keys_that_it_was_told_last(running: Template) -> None:
    worker, other, third = born(running), Signer("other"), Signer("third")
    plan = plan_for("echo", {})
    assert worker.call(other.call(plan)).outcome == "grant_refused"
    keys = [json.loads(signer.jwks)["keys"][0] for signer in (other, SIGNER)]
    worker.channel.send(GrantKeys(json.dumps({"keys": keys})))
    assert [worker.call(signer.call(plan)).outcome for signer in (other, SIGNER)] == ["success", "success"]
    worker.channel.send(GrantKeys(third.jwks))
    wanted = [(third, "success"), (other, "grant_refused"), (SIGNER, "grant_refused")]
    assert [worker.call(signer.call(plan)).outcome for signer, _ in wanted] == [outcome for _, outcome in wanted]


@pytest.mark.parametrize("jwks", ["", "{}", '{"keys":[]}'])
def test_grant_keys_without_keys_end_the_worker(running: Template, jwks: str) -> None:
    worker = born(running)
    worker.channel.send(GrantKeys(jwks))
    assert exit_status(running, worker) == Exit.PROTOCOL


@pytest.mark.parametrize("messages", ["call first", "keys first", "welcome twice", "retire first"])
def test_a_message_out_of_order_ends_the_worker(running: Template, messages: str) -> None:
    worker = running.spawn()
    said: dict[str, list[Message]] = {
        "call first": [SIGNER.call(plan_for("echo", {}))],
        "retire first": [Retire()],
        "keys first": [GrantKeys(SIGNER.jwks)],
        "welcome twice": [Welcome(SIGNER.jwks), Welcome(SIGNER.jwks)],
    }
    for message in said[messages]:
        worker.raw(encode_frame(message, MAX_CALL_FRAME))
    assert exit_status(running, worker) == Exit.PROTOCOL


@pytest.mark.parametrize("jwks", ["", "{}", '{"keys":[]}'])
def test_a_welcome_without_keys_ends_the_worker(running: Template, jwks: str) -> None:
    worker = running.spawn()
    worker.channel.send(Welcome(jwks))
    assert exit_status(running, worker) == Exit.PROTOCOL


def test_a_flood_of_calls_is_served_in_order(running: Template) -> None:
    worker = born(running)
    call = SIGNER.call(plan_for("echo", {}))
    wanted = [Call(f"c{number}", call.plan, call.grant, {}, 600.0) for number in range(50)]
    for one in wanted:
        worker.channel.send(one)
    for one in wanted:
        worker.channel._session.state = "calling"
        assert worker.channel.receive().call_id == one.call_id


def test_a_worker_dies_with_the_template_even_while_it_computes(tmp_path: Path) -> None:
    with template(tmp_path) as running:
        running.load(ModuleFile("builtin:spin", None, ("clock",)))
        worker = born(running)
        plan = plan_for(
            "spin", {"seconds": 3600}, required_imports=("clock",), limits=Limits(fuel=2**62, timeout_seconds=3600.0)
        )
        worker.channel.send(SIGNER.call(plan))
        kill(running.process.pid)
        assert has_ended(worker.pid)
