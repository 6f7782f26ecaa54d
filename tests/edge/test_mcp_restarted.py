"""A caller of `/mcp` whose gateway goes away and comes back without the keys that its lease was signed with."""

import shutil
from pathlib import Path

from tests.support.edge_process import edge, edge_config
from tests.support.gateway import gateway
from tests.support.issued_tokens import behind_an_edge
from tests.support.mcp_over_http import MCP, access_token, tool_called
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
