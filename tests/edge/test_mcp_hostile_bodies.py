"""Bodies at `/mcp` that are no call: each is answered, ends nothing else, and none is a fault of the edge."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import Gateway
from tests.support.mcp_over_http import ACCEPT, MCP, access_token, asked


@pytest.fixture(scope="module")
def serving(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    folder: Path = tmp_path_factory.mktemp("mcp-hostile")
    with edge(edge_config(folder, gate.ready["client_socket"], MCP)) as running:
        yield running


def call(arguments: bytes, method: bytes = b"tools/call", number: bytes = b"1") -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":' + number + b',"method":"' + method
        + b'","params":{"name":"text_digest","arguments":' + arguments + b"}}"
    )  # fmt: skip


GOOD = call(b'{"text":"a"}')
AMBIGUOUS = {
    "a value twice": call(b'{"text":"a","text":"b"}'),
    "a value twice, spelt in two ways": call(b'{"text":"a","te\\u0078t":"b"}'),
    "the tool twice": GOOD.replace(b'"params":{', b'"params":{"name":"payment_transfer",'),
    "the arguments twice": GOOD.replace(b'"params":{', b'"params":{"arguments":{"text":"b"},'),
    "the method twice": GOOD.replace(b'"method":', b'"method":"ping","method":'),
    "the id twice": GOOD.replace(b'"id":', b'"id":7,"id":'),
    "a number that is none": call(b'{"text":"a","more":NaN}'),
    "an id of null": call(b'{"text":"a"}', number=b"null"),
    "an id with a fraction": call(b'{"text":"a"}', number=b"1.5"),
}
"""Two readers could read these differently."""
BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "half of a surrogate pair": call(b'{"text":"\\ud800"}'),
    "arrays that lie deep": b"[" * 100_000 + b"]" * 100_000,
    "objects that lie deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "arguments that lie deep": call(b'{"text":' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "an integer of many digits": call(b'{"text":' + b"9" * 100_000 + b"}"),
    "an id of many digits": call(b"{}", number=b"9" * 10_000),
    "a number that is none": call(b'{"text":NaN}'),
    "an empty batch": b"[]",
    "a batch": b"[" + call(b'{"text":"a"}') + b"," + call(b'{"text":"b"}', number=b"2") + b"]",
    "a batch of many": b"[" + b",".join([call(b"{}")] * 5000) + b"]",
    "an id of null": call(b"{}", number=b"null"),
    "a method that is unknown": call(b"{}", method=b"no/such"),
    "a tool with a name twice": call(b'{"text":"a","text":"b"}'),
    "an answer": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "a revision that is unknown": b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}',
}


def calls(gate: Gateway) -> int:
    return len(gate.events(event_type="ActionCall", limit=200))


@pytest.mark.parametrize("body", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_call_that_two_readers_could_read_differently_does_not_run(serving: Edge, gate: Gateway, body: bytes) -> None:
    headers = {**ACCEPT, "Content-Type": "application/json", "Authorization": f"Bearer {access_token(jti='two')}"}
    client, before = serving.client(), calls(gate)
    answer = client.post("/mcp", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"] in (-32700, -32600)) == (400, True), answer.text
    assert calls(gate) == before
    assert '"words":1' in client.post("/mcp", content=GOOD, headers=headers).text


@pytest.mark.parametrize("revision", [None, "2025-11-25", "2026-07-28", "1999-01-01"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_is_no_call_is_answered_and_the_next_request_is_served(
    serving: Edge, body: bytes, revision: str | None
) -> None:
    shown = access_token(jti="hostile")
    headers = {**ACCEPT, "Content-Type": "application/json", "Authorization": f"Bearer {shown}"}
    if revision is not None:
        headers["MCP-Protocol-Version"] = revision
    answer = serving.clients[0].post("/mcp", content=body, headers=headers) if serving.clients else None
    if answer is None:
        answer = serving.client().post("/mcp", content=body, headers=headers)
    assert answer.status_code < 500, answer.text
    assert asked(serving, shown).status_code == 200
    assert '"level":"error"' not in serving.log.read_text()
