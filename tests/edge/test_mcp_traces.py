"""The trace of an MCP client, through edge and gateway, becomes a link of the call's span."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import gateway
from tests.support.issued_tokens import behind_an_edge
from tests.support.mcp_over_http import ACCEPT, MCP, access_token, mcp_client
from tests.support.otlp_receiver import Received, receiver
from tests.support.upstream import Upstream

OF_THE_REQUEST, OF_THE_TRANSPORT = (f"00-{one * 32}-{one * 16}-01" for one in "ab")
REVISION = "2025-11-25"


@pytest.fixture(scope="module")
def traced(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Edge, Received]]:
    folder: Path = tmp_path_factory.mktemp("traced")
    with receiver() as collector:
        table = f'[telemetry.otlp]\nendpoint = "{collector.endpoint}"\n'
        with gateway(folder, f"{behind_an_edge(folder, up)}\n{table}") as gate:
            place = folder / "edge"
            place.mkdir()
            with edge(edge_config(place, gate.ready["client_socket"], MCP), None) as running:
                yield running, collector


def linked(collector: Received, trace_id: str) -> list[str]:
    """The traces that the span of a call links to."""
    links = collector.trace(trace_id)["execute_tool text_digest"].links
    return [f"00-{link.trace_id.hex()}-{link.span_id.hex()}-01" for link in links]


@pytest.mark.parametrize(
    ("meta", "headers", "link"),
    [
        ({"traceparent": OF_THE_REQUEST}, {}, [OF_THE_REQUEST]),
        ({}, {"traceparent": OF_THE_TRANSPORT}, [OF_THE_TRANSPORT]),
        ({"traceparent": OF_THE_REQUEST}, {"traceparent": OF_THE_TRANSPORT}, [OF_THE_REQUEST]),
        ({"traceparent": "x\r\nHost: elsewhere"}, {}, []),
        ({"traceparent": 7}, {}, []),
        ({}, {}, []),
    ],
)
def test_the_trace_of_a_request_or_else_of_its_transport_is_linked(
    traced: tuple[Edge, Received], meta: dict[str, Any], headers: dict[str, str], link: list[str]
) -> None:
    serving, collector = traced
    params = {"name": "text_digest", "arguments": {"text": "x"}} | ({"_meta": meta} if meta else {})
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    credential = {"Authorization": f"Bearer {access_token()}", "MCP-Protocol-Version": REVISION}
    answer = serving.client().post("/mcp", json=asked, headers=ACCEPT | credential | headers)
    assert answer.status_code == 200, answer.text
    (data,) = [line for line in answer.text.splitlines() if '"result"' in line]
    told = json.loads(data.removeprefix("data:"))["result"]["structuredContent"]
    assert linked(collector, told["trace_id"]) == link


def test_the_official_client_s_own_trace_is_linked(traced: tuple[Edge, Received]) -> None:
    serving, collector = traced

    async def run() -> dict[str, Any]:
        async with mcp_client(serving, access_token()) as client:
            meta: Any = {"traceparent": OF_THE_REQUEST}
            called = await client.call_tool("text_digest", {"text": "x"}, meta=meta)
            return called.structured_content or {}

    assert linked(collector, anyio.run(run)["trace_id"]) == [OF_THE_REQUEST]
