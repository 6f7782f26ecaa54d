"""One request to a witness, and whatever the other side may do to it."""

from typing import Any

import pytest
import trio

from frontend.witnesses.reply import Reply
from frontend.witnesses.submission import body_of, open_submission
from ipc.operations.witnesses import ToCosign
from ipc.settings import WitnessSettings
from tests.support.patience import PATIENCE
from tests.support.webhook_receiver import (
    Answer,
    Receiver,
    drips,
    floods,
    hangs_up,
    holds,
    redirects,
    says,
    sends,
)
from witness.submissions import parse

NOTE = "gate.test\n9\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— gate.test AAAAAAAAAAA=\n"
ASKED = ToCosign(old_size=5, size=9, proof=("CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=",), note=NOTE)
OK = b"HTTP/1.1 200 OK\r\n"
SOON = 0.3
NO_HTTP = Reply(problem="the connection ended without a whole answer in HTTP")


async def submit(address: str | None, *, resolve: str = "witness.test", **changes: Any) -> Reply:
    fields: dict[str, Any] = {"url": "http://witness.test/log", "timeout_seconds": PATIENCE} | changes
    witness = WitnessSettings("city", key="", **fields)
    submission = open_submission("0.1.0", {} if address is None else {resolve: address}, witness)
    with trio.fail_after(2 * PATIENCE):
        return await submission.submit(ASKED)


async def test_a_request_is_what_the_protocol_says(receiver: Receiver) -> None:
    receiver.answer = says(200, body=b"lines\n")
    assert await submit(receiver.address) == Reply(200, "lines\n")
    (one,) = receiver.received
    assert one.line == "POST /log/add-checkpoint HTTP/1.1"
    assert one.headers["host"] == "witness.test"
    assert one.body == body_of(ASKED) == f"old 5\n{ASKED.proof[0]}\n\n{NOTE}".encode()
    parsed = parse(one.body)
    assert (parsed.old_size, len(parsed.proof), parsed.head.size, parsed.note) == (5, 1, 9, NOTE)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (says(409, "Content-Type: text/x.tlog.size", body=b"12\n"), Reply(409, told=12)),
        (says(409, body=b"12"), Reply(409)), (says(409, body=b"012\n"), Reply(409)),
        (says(409, body=b"-1\n"), Reply(409)), (says(409, body=b"9" * 19 + b"\n"), Reply(409)),
        (says(404, body=b"\xff"), Reply(404)), (says(422), Reply(422)), (says(500), Reply(500)),
        (says(200, body=b"\xff\xfe"), Reply(200, problem="its answer is no text")),
        (hangs_up, NO_HTTP), (sends(b"no HTTP\r\n\r\n"), NO_HTTP), (sends(OK + b"Content-Length: 9\r\n\r\nx"), NO_HTTP),
        (floods(OK + b"Content-Length: 9999999\r\n\r\n"), NO_HTTP),
        (floods(OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n"), NO_HTTP),
    ],
)  # fmt: skip
async def test_whatever_is_answered_becomes_a_reply(receiver: Receiver, answer: Answer, reply: Reply) -> None:
    receiver.answer = answer
    assert await submit(receiver.address) == reply


async def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answer = redirects(f"http://{receiver.address}/other")
    assert (await submit(receiver.address)).status == 307
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    "answer", [holds(), drips(OK, b"X: y\r\n"), drips(OK + b"Content-Length: 99999\r\n\r\n", b"x")]
)
async def test_a_witness_that_takes_its_time_is_given_up(receiver: Receiver, answer: Answer) -> None:
    receiver.answer = answer
    reply = await submit(receiver.address, timeout_seconds=SOON)
    assert reply in (Reply(problem="no answer in time"), Reply(problem="no connection could be made"))


async def test_a_name_that_leads_nowhere_is_said(receiver: Receiver) -> None:
    problem = (await submit(None, url="http://witness.invalid")).problem
    assert problem == "the name could not be resolved"
    problem = (await submit("127.0.0.1:1")).problem
    assert problem == "no connection could be made"


@pytest.mark.parametrize(("is_private", "url"), [(False, "http://localhost"), (True, "http://localhost")])
async def test_the_gateways_own_host_is_not_reached_whatever_is_allowed(is_private: bool, url: str) -> None:
    reply = await submit(None, url=url, private_network=is_private)
    assert reply.problem == "the name leads to private or reserved addresses only"


@pytest.mark.parametrize(
    ("address", "is_private", "may"),
    [("10.1.2.3", False, False), ("10.1.2.3", True, True), ("192.168.0.9", True, True), ("fd00::1", True, True),
     ("127.0.0.1", True, False), ("169.254.169.254", True, False), ("fe80::1", True, False), ("::1", True, False),
     ("0.0.0.0", True, False), ("::ffff:10.0.0.1", True, False), ("8.8.8.8", False, True), ("x", True, False)],
)  # fmt: skip
async def test_a_private_network_is_reached_where_that_is_said(address: str, is_private: bool, may: bool) -> None:
    witness = WitnessSettings("city", "https://witness.test", "", private_network=is_private)
    submission: Any = open_submission("0.1.0", {}, witness)
    assert submission._may_reach(address) is may
