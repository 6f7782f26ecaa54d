"""A real bridge with real servers: sessions, their ends, and who is refused."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from mcp import Client

from tests.support.bridge_process import SERVER, Bridge, bridge
from tests.support.gateway import wait_for
from tests.support.processes import attempt, is_running, sentences, status
from tests.support.refused import refusal

OFFICIAL = Path(__file__).parents[1] / "support" / "official_mcp_server.py"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    with ExitStack() as until_the_end:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("GATEWAY__SECRETS__FILE", "/x")
            environment.setenv("TOKEN_OF_THE_SERVER", "t")
            running = bridge(tmp_path_factory.mktemp("bridge"), "--host", "mcp.internal")
            served = until_the_end.enter_context(running)
        yield served


async def test_the_official_client_calls_a_tool_of_an_official_server(tmp_path: Path) -> None:
    with bridge(tmp_path, command=(sys.executable, str(OFFICIAL))) as running:
        async with Client(running.url) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["add"]
            assert (await client.call_tool("add", {"a": 2, "b": 3})).structured_content == {"result": 5}
        wait_for(lambda: running.reasons() == ["the client ended it"], "the end of the session")


def test_each_session_has_a_server_of_its_own(served: Bridge) -> None:
    one, other = served.session().open(), served.session().open()
    assert [one.value("count"), one.value("count"), other.value("count")] == [1, 2, 1]


def test_a_session_that_is_deleted_ends_its_server(served: Bridge) -> None:
    session = served.session().open()
    pid, child = session.value("pid"), session.value("child")
    assert served.http.delete("/mcp", headers={"Mcp-Session-Id": session.id}).status_code == 204
    wait_for(lambda: not is_running(pid) and not is_running(child), "the end of the server's process group")
    assert session.call("count").status_code == 404


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("die", "the server ended"),
        ("flood", "the server wrote a line that is no message"),
        ("noise", "the server wrote a line that is no message"),
        ("long", "the server wrote a line that is too long"),
    ],
)
def test_a_server_that_dies_or_breaks_the_protocol_ends_its_session_alone(
    served: Bridge, tool: str, reason: str
) -> None:
    other, session = served.session().open(), served.session().open()
    before = len(served.reasons())
    answer = session.call(tool)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == "the server ended; send initialize again"
    wait_for(lambda: reason in served.reasons()[before:], "the reason in the log")
    assert session.call("count").status_code == 404
    assert other.value("count") == 1
    assert served.session().open().value("count") == 1


def test_an_error_without_an_id_ends_no_session(served: Bridge) -> None:
    session = served.session().open()
    assert session.post({"jsonrpc": "2.0", "method": "notifications/unknown"}).status_code == 202
    assert [session.value("count") for _ in range(2)] == [1, 2]


def test_a_request_of_the_servers_is_refused_by_the_bridge(served: Bridge) -> None:
    assert served.session().open().value("ask")["error"]["code"] == -32601


def test_a_large_answer_of_several_lines_of_text_arrives_whole(served: Bridge) -> None:
    session = served.session().open()
    params = b'{"name": "say",\n "arguments": {"times": 100000}}'
    pretty = b'{"jsonrpc": "2.0",\r\n "id": "a",\n "method": "tools/call",\n "params": %b}' % params
    answer = session.post(pretty)
    assert answer.json()["id"] == "a"
    assert answer.json()["result"]["content"][0]["text"].count("\\u00e9") == 100_000


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "http://127.0.0.1"}, {"Origin": "null"}, {"Host": "127.0.0.1.evil"}],
)
def test_a_foreign_host_or_any_origin_is_refused(served: Bridge, headers: dict[str, str]) -> None:
    answer = served.session().ask("initialize", **headers)
    assert answer.status_code == 403
    assert answer.json()["error"]["message"] == "foreign Host or Origin"


@pytest.mark.parametrize("host", ["mcp.internal", "MCP.internal:8811", "localhost", "127.0.0.1:1", "[::1]:8811"])
def test_its_own_names_and_those_of_host_are_served(served: Bridge, host: str) -> None:
    assert served.session().ask("tools/list", Host=host).status_code == 400  # and no session


@pytest.mark.parametrize(
    ("body", "status_code"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "initialize"}', 400),
        (b'{"jsonrpc": "2.0"}', 400),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "initialize"}', 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "x": "' + b"y" * (5 << 20) + b'"}', 413),
    ],
)
def test_what_is_no_message_that_can_be_passed_on_is_refused(served: Bridge, body: bytes, status_code: int) -> None:
    assert served.session().post(body).status_code == status_code


def test_other_paths_methods_and_types_are_refused(served: Bridge) -> None:
    assert served.http.post("/", content=b"{}").status_code == 404
    assert served.http.get("/mcp").status_code == 405
    assert served.http.get("/mcp").headers["allow"] == "POST, DELETE"
    assert served.session().ask("initialize", Content_Type="text/plain").status_code == 415
    assert served.http.delete("/mcp", headers={"Mcp-Session-Id": "x"}).status_code == 404


def test_the_log_holds_neither_an_id_of_a_session_nor_an_argument(served: Bridge) -> None:
    session = served.session().open()
    assert session.value("add", a=123456789, b=0) == 123456789
    text = served.log.read_text()
    assert session.id not in text
    assert "123456789" not in text
    assert all(line["trace_id"] for line in served.lines() if line["message"].startswith("session"))


def test_bridge_and_servers_have_no_capability_and_gain_none(served: Bridge) -> None:
    for pid in (served.process.pid, served.session().open().value("pid")):
        assert {status(pid, name) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
        assert status(pid, "NoNewPrivs") == "1"


def test_settings_of_a_gateway_do_not_reach_the_server(served: Bridge) -> None:
    environment = psutil.Process(served.session().open().value("pid")).environ()
    assert "GATEWAY__SECRETS__FILE" not in environment
    assert environment["TOKEN_OF_THE_SERVER"] == "t"


def test_a_server_that_refuses_initialize_leaves_no_session(served: Bridge) -> None:
    before = served.reasons().count("the server refused initialize")
    answer = served.session().ask("initialize", {"protocolVersion": "unknown"})
    assert answer.json()["error"]["code"] == -32602
    assert "mcp-session-id" not in answer.headers
    wait_for(lambda: served.reasons().count("the server refused initialize") == before + 1, "the end of the session")


def test_a_server_that_can_not_start_says_why_in_the_log(tmp_path: Path) -> None:
    with bridge(tmp_path, command=(*SERVER, "dies")) as running:
        assert running.session().ask("initialize", {}).status_code == 502
        ended = wait_for(
            lambda: next((one for one in running.lines() if one["message"] == "session ended"), None), "the end"
        )
        assert ended["said"] == "no key in the environment\n"
        assert ended["exit"] == 1


@pytest.mark.parametrize("ends_hard", [False, True])
def test_servers_that_look_at_nothing_end_with_the_bridge(tmp_path: Path, ends_hard: bool) -> None:
    answer = '{"jsonrpc":"2.0","id":1,"result":{}}'
    script = f"read line; echo '{answer}'; trap '' TERM; exec sleep 3600"
    with bridge(tmp_path, command=("/bin/sh", "-c", script)) as running:
        assert running.session().ask("initialize", {}).status_code == 200
        below = [one.pid for one in psutil.Process(running.process.pid).children()]
        assert len(below) == 2  # one serves the session, one is kept ready
        if ends_hard:
            running.process.kill()
            running.process.wait()
        else:
            assert running.stop() == 0
        wait_for(lambda: not any(map(is_running, below)), "the end of the servers")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--listen", "0.0.0.0:0"), "must be an address of this machine alone"),
        (("--listen", "mcp.internal:80"), "must be an address of this machine alone"),
        (("--listen", "127.0.0.1:0", "--host", "a b"), "must be a host's name"),
    ],
)
def test_a_command_line_that_can_not_work_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    refused = refusal("mcp-bridge", *arguments, "--", *SERVER)
    assert refused.code == 2
    assert sentence in refused.sentence


def test_a_program_that_is_not_there_is_refused_at_the_start() -> None:
    refused = refusal("mcp-bridge", "--listen", "127.0.0.1:0", "--user", "root", "--", "no-such-program")
    assert refused.code == 2
    assert "no program" in refused.sentence


def test_a_user_that_is_not_there_is_refused_at_the_start() -> None:
    done = attempt("mcp-bridge", "--listen", "127.0.0.1:0", "--user", "no-such-user", "--", *SERVER)
    assert done.returncode == 2
    assert "there is no such user" in "".join(sentences(done))


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone is refused")
def test_root_has_to_say_as_which_user_the_servers_run() -> None:
    done = attempt("mcp-bridge", "--listen", "127.0.0.1:0", "--", *SERVER)
    assert done.returncode == 77
    assert "add --user NAME" in "".join(sentences(done))


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes another user")
def test_a_server_runs_as_the_user_that_is_named(tmp_path: Path) -> None:
    said = '{"jsonrpc":"2.0","id":1,"result":{"u":"%s %s %s"}}'
    script = f"read line; printf '{said}\\n' $(id -u) $(id -G) $HOME; read line"
    with bridge(tmp_path, command=("/bin/sh", "-c", script), user=("--user", "nobody")) as running:
        answer = running.session().ask("initialize", {})
    assert answer.json()["result"]["u"].split()[:2] == ["65534", "65534"]
    assert answer.json()["result"]["u"].split()[2] != os.environ.get("HOME")
