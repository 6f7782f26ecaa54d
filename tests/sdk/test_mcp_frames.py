"""Lines of standard input that a host may send: every request with a readable id is answered."""

import json
import os
import threading
from typing import Any

import pytest
from gateway_client.mcp_server import answers
from gateway_client.mcp_server.frames import MAX_BATCH, MAX_LINE, line_of, messages_of
from gateway_client.mcp_server.stdio import lines
from gateway_client.results import Executed
from gateway_client.wire.decoding import decode
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse


def request(request_id: str = "7", text: str = '"x"') -> bytes:
    call = f'{{"name":"text_digest","arguments":{{"text":{text}}}}}'
    return f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call","params":{call}}}'.encode()


def errors(line: bytes) -> list[tuple[Any, int]]:
    """Ids and codes of the errors that answer a line which reaches the server in no part."""
    found = []
    for one in messages_of(line):
        assert isinstance(one, bytes)
        frame = json.loads(one)
        found.append((frame["id"], frame["error"]["code"]))
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (request(text='"\\ud83d"'), (7, -32700)),
        (request(text='"\\ude00\\ud83d"'), (7, -32700)),
        (request(text='"x",'), (7, -32700)),
        (request(text='"x') + b"}", (7, -32700)),
        (request(text="NaN"), (7, -32700)),
        (request(text='"x","text":"y"'), (7, -32700)),
        (request(text='"a\nb"'.replace("\n", "\t")), (7, -32700)),
        (request(text="[" * 100_000 + "]" * 100_000), (7, -32700)),
        (request(text="9" * 10_000), (7, -32700)),
        (request().replace(b'"x"', b'"\xff"'), (7, -32700)),
        (request().decode().encode("utf-16"), (None, -32700)),
        (request("7.0"), (7.0, -32600)),
        (request("null"), (None, -32600)),
        (request("true"), (None, -32600)),
        (request('{"id":8}'), (None, -32600)),
        (request('"a\\ud83d"'), ("a\ud83d", -32700)),
        (b'{"id":7}', (7, -32600)),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', (7, -32600)),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', (7, -32600)),
        (b'{"params":{"id":8,"text":"\\ud83d"},"id":7}', (7, -32700)),
        (b'{"params":{"text":"' + b"x" * MAX_LINE + b'"},"id":"late"}', ("late", -32600)),
        (b"nonsense", (None, -32700)),
        (b"5", (None, -32600)),
        (b"[]", (None, -32600)),
    ],
    ids=lambda value: repr(value)[:70],
)  # fmt: skip
def test_a_request_that_can_not_be_served_is_answered_by_its_id(line: bytes, expected: tuple[Any, int]) -> None:
    assert errors(line) == [expected]


@given(st.binary(max_size=40), st.integers(0, 120))
def test_a_request_damaged_behind_its_id_is_served_or_answered(damage: bytes, place: int) -> None:
    line = b'{"id":7,' + request()[1:].replace(b'"id":7,', b"")
    place = min(8 + place, len(line))
    damaged = line[:place] + damage.replace(b"\n", b"") + line[place:]
    (first, *_) = messages_of(damaged)
    found = json.loads(first) if isinstance(first, bytes) else first.message.model_dump()
    assert found["id"] == 7 or b'"id"' in damage


def test_members_of_a_batch_are_served_as_lines_of_their_own() -> None:
    batch = b"[" + request("1") + b"," + request("2.5") + b',{"id":"three"},' + request("4") + b"]"
    served = [one.message.model_dump()["id"] for one in messages_of(batch) if isinstance(one, SessionMessage)]
    refused = [json.loads(one)["id"] for one in messages_of(batch) if isinstance(one, bytes)]
    assert (served, refused) == ([1, 4], [2.5, "three"])
    assert errors(b"[" + request("1", '"\\ud83d"') + b"," + request("2") + b"]") == [(1, -32700), (2, -32700)]
    long = b"[" + b",".join(request(str(number)) for number in range(MAX_BATCH + 2)) + b"]"
    assert [json.loads(one)["id"] for one in messages_of(long) if isinstance(one, bytes)] == [MAX_BATCH, MAX_BATCH + 1]


@pytest.mark.parametrize("line", [b"\xef\xbb\xbf" + request(), request() + b"\r", request(text='"\\ud83d\\ude00"')])
def test_a_byte_order_mark_a_carriage_return_and_a_whole_pair_harm_no_request(line: bytes) -> None:
    (message,) = messages_of(line)
    assert isinstance(message, SessionMessage)
    assert message.message.model_dump()["id"] == 7


@pytest.mark.parametrize("line", [b"", b" \r", b'{"jsonrpc":"2.0","id":1.5,"result":{}}', b'{"id":1,"error":5}'])
def test_an_empty_line_and_an_answer_to_nothing_are_passed_over(line: bytes) -> None:
    assert list(messages_of(line)) == []


def test_an_answer_that_can_not_be_encoded_is_an_error_for_its_request() -> None:
    message = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=3, result={"text": "\ud83d"}))
    frame = json.loads(line_of(message))
    assert (frame["id"], frame["error"]["code"]) == (3, -32603)


def test_an_output_with_half_of_a_surrogate_pair_is_answered_without_it() -> None:
    told = {"verification_outcome": "verified", "trace_id": "t", "action_id": "a", "grant_id": "g", "receipt_id": "r"}
    done = decode(Executed, told | {"output": {"x": "a\ud83db"}}, "result")
    result = answers.executed(done)
    assert result.structured_content["output"] == {"x": "a?b"}
    assert json.loads(result.model_dump_json())["content"]


def test_a_line_that_does_not_end_is_held_up_to_its_bound() -> None:
    reading, writing = os.pipe()
    sent = b"x" * (3 * MAX_LINE) + b'"id":7}\nsecond\nthird'

    def write() -> None:
        with open(writing, "wb") as wire:
            wire.write(sent)

    thread = threading.Thread(target=write)
    thread.start()
    first, second, third = lines(reading)
    thread.join()
    os.close(reading)
    assert (second, third) == (b"second", b"third")
    assert first.endswith(b'"id":7}')
    assert MAX_LINE < len(first) < MAX_LINE + 100_000
