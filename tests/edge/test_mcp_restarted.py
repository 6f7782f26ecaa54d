"""A caller of `/mcp` whose gateway is reloaded, or comes back without the keys that its lease was signed with."""

import shutil
from pathlib import Path

import anyio
import pytest
from mcp import MCPError

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import Gateway, gateway
from tests.support.issued_tokens import behind_an_edge
from tests.support.mcp_over_http import MCP, access_token, mcp_client, tool_called
from tests.support.upstream import Upstream


def test_a_caller_takes_one_new_lease_by_itself_and_its_call_runs_once(up: Upstream, tmp_path: Path) -> None:
    config, shown = behind_an_edge(tmp_path, up), access_token()
    wanted = {"path": "restarted", "message": "a"}
    place = tmp_path / "edge"
    place.mkdir()
    socket_path = tmp_path / "state" / "run" / "gate.sock"
    with edge(edge_config(place, socket_path, MCP)) as serving:
        with gateway(tmp_path, config) as gate:
            assert gate.ready["client_socket"] == str(socket_path)
            assert tool_called(serving, shown, "text_digest", {"text": "a"})["decision"] == "executed"
        gone = tool_called(serving, shown, "http_post", wanted)
        assert (gone["error"], gone["is_retryable"], gone["may_have_run"]) == ("unreachable", True, False)
        shutil.rmtree(gate.state)
        with gateway(tmp_path, config) as gate:
            assert tool_called(serving, shown, "http_post", wanted)["decision"] == "executed"
            assert len(gate.events(event_type="LeaseIssued")) == 1
    assert [one.path for one in up.seen].count("/restarted") == 1


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_reload_changes_the_tools_of_a_caller_under_its_lease(up: Upstream, tmp_path: Path, mode: str) -> None:
    config = behind_an_edge(tmp_path, up)
    place = tmp_path / "edge"
    place.mkdir()

    async def act(serving: Edge, gate: Gateway) -> tuple[set[str], set[str]]:
        async with mcp_client(serving, access_token(), mode) as client:
            before = {one.name for one in (await client.list_tools()).tools}
            assert not (await client.call_tool("text_digest", {"text": "a"})).is_error
            (tmp_path / "actions" / "text_digest.yaml").unlink()
            assert gate.operator().post("/v1/admin/reload").status_code == 200
            after = {one.name for one in (await client.list_tools()).tools}
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("text_digest", {"text": "a"})
            assert not (await client.call_tool("http_post", {"path": "reloaded", "message": "a"})).is_error
            return before, after

    with gateway(tmp_path, config) as gate, edge(edge_config(place, gate.ready["client_socket"], MCP)) as serving:
        before, after = anyio.run(act, serving, gate)
        assert before - after == {"text_digest"}
        assert len(gate.events(event_type="LeaseIssued")) == 1
