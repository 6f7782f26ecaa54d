"""The callers that the console answers, and the parts of a request that it forwards: a real process before a scripted
gateway."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console_process import Console, console, refused
from tests.support.ports import closed_port
from tests.support.refused import refusal
from tests.support.scripted_gateway import ScriptedGateway, scripted_gateway

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
STATUS = "/v1/admin/status"
FINE = {"Origin": "", "Sec_Fetch_Site": "same-origin"}


@pytest.fixture(scope="module")
def script() -> Iterator[ScriptedGateway]:
    with scripted_gateway({}) as running:
        yield running


@pytest.fixture(scope="module")
def served(script: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    more = ("--gateway", script.url, "--public-base-url", "https://gateway.example")
    with console(tmp_path_factory.mktemp("console"), *more) as running:
        yield running


@pytest.fixture
def one(served: Console, script: ScriptedGateway) -> Console:
    script.answers = {f"GET {STATUS}": (200, {"status": "ok"})}
    script.headers = {"X-Trace-Id": "trc_1", "Set-Cookie": "a=b"}
    script.requests.clear()
    script.tokens.clear()
    return served


@pytest.mark.parametrize("path", ["/", "/main.js", "/style.css", "/console.json", STATUS, "/nothing"])
def test_every_answer_forbids_what_the_page_does_not_need(one: Console, path: str) -> None:
    answer = one.ask("GET", path)
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == answer.headers["cross-origin-resource-policy"]
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-trace-id"].startswith("trc_")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/main.js", "/console.json", STATUS])
@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "evil.example:3080", ""])
def test_another_name_that_leads_here_gets_nothing(one: Console, script: ScriptedGateway, host: str, path: str) -> None:
    answer = one.http.get(path, headers={"Host": host, "Authorization": "DPoP key-ann-0", "DPoP": "a.b.c"})
    assert answer.status_code == 403
    assert script.requests == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},
    ],
)  # fmt: skip
def test_another_sites_page_reads_and_decides_nothing(
    one: Console, script: ScriptedGateway, headers: dict[str, str]
) -> None:
    for method, path in (("GET", STATUS), ("GET", "/console.json"), ("POST", "/v1/approvals/apr_1/approve")):
        answer = one.ask(method, path, **headers)
        assert (answer.status_code, answer.json()) == (403, {"error": "foreign_request"})
    assert script.requests == []


def test_a_link_may_lead_to_the_page(one: Console) -> None:
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert one.ask("GET", "/", **followed).status_code == 200
    assert one.ask("GET", "/main.js", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status_code == 403


def test_what_the_page_sends_to_prove_itself_is_passed_on_and_nothing_is_added(
    one: Console, script: ScriptedGateway
) -> None:
    answer = one.ask("GET", f"{STATUS}?a=b", **FINE, Cookie="a=b", X_Other="c")
    assert (answer.status_code, answer.json(), answer.headers["x-trace-id"]) == (200, {"status": "ok"}, "trc_1")
    assert (script.requests, script.tokens) == ([f"GET {STATUS}?a=b"], [f"DPoP key-ann-{'0' * 32}"])
    assert one.ask("GET", "/v1/actions").status_code == 404
    assert script.tokens[1:] == [""]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/admin/drain"), ("POST", "/v1/admin/revoke-all"), ("POST", "/v1/admin/reload"),
        ("GET", "/metrics"),
        ("POST", "/v1/leases"), ("POST", "/v1/actions/a/execute"), ("POST", "/v1/admin/policy/grant"),
        ("DELETE", "/v1/admin/domains"), ("POST", STATUS), ("DELETE", "/v1/approvals/apr_1"), ("GET", "/v1/approvals/"),
        ("GET", "/v1/approvals/.."), ("GET", "/v1/approvals/%2e%2e"), ("GET", "/v1/approvals/a/b"),
        ("POST", "/"), ("POST", "/console.json"), ("GET", "/../main.py"), ("GET", "/index.html"),
    ],
)  # fmt: skip
def test_what_is_not_in_the_table_never_reaches_the_gateway(
    one: Console, script: ScriptedGateway, method: str, path: str
) -> None:
    assert one.ask(method, path).status_code == 404
    assert script.requests == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": ""}, {"DPoP": ""}, {"Authorization": "Bearer key-ann-0"},
        {"Authorization": "DPoP lease.jwt.x"},
        {"Authorization": "DPoP key-" + "a" * 80}, {"DPoP": "a" * 4097}, {"DPoP": "a b"},
    ],
)  # fmt: skip
def test_a_request_that_proves_nothing_stays_here(
    one: Console, script: ScriptedGateway, headers: dict[str, str]
) -> None:
    assert one.ask("GET", STATUS, **headers).status_code == 401
    assert script.requests == []


def test_two_proofs_are_none(one: Console, script: ScriptedGateway) -> None:
    twice = [("Authorization", f"DPoP key-ann-{'0' * 32}"), ("DPoP", "a.b.c"), ("DPoP", "a.b.c")]
    assert one.http.get(STATUS, headers=twice).status_code == 401
    assert script.requests == []


def test_bodies_and_queries_are_bounded(one: Console, script: ScriptedGateway) -> None:
    assert one.ask("POST", "/v1/approvals/apr_1/deny", {"reason": "x" * 20_000}).status_code == 413
    assert one.ask("GET", f"/v1/audit/events?trace_id={'x' * 3000}").status_code == 400
    assert script.requests == []


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        ((200, "x" * (16 * 1024 * 1024 + 1)), {}), ((302, {}), {"Location": "http://evil.example/"}),
        ((200, "<script>"), {"Content-Type": "text/html"}),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_of_the_gateways_is_not_passed_on(
    one: Console, script: ScriptedGateway, answer: tuple[int, object], headers: dict[str, str]
) -> None:
    script.answers, script.headers = {f"GET {STATUS}": answer}, headers
    told = one.ask("GET", STATUS)
    assert (told.status_code, told.json()) == (502, {"error": "gateway_not_understood"})


def test_a_gateway_that_is_gone_is_said_and_logged_without_the_key(tmp_path: Path) -> None:
    with closed_port() as port, console(tmp_path, "--gateway", f"http://127.0.0.1:{port}") as one:
        told = one.ask("GET", STATUS)
        one.ask("POST", "/v1/approvals/apr_1/deny", {"reason": "secret words"})
        assert (told.status_code, told.json()) == (502, {"error": "gateway_unreachable"})
        (line, *_) = [line for line in one.lines() if line["message"] == "no answer of the gateway"]
        assert (line["trace_id"], line["path"]) == (told.headers["x-trace-id"], STATUS)
        assert one.stop() == 0
        logged = json.dumps(one.lines())
    assert "key-ann" not in logged
    assert "header.claims" not in logged
    assert "secret words" not in logged


@pytest.mark.usefixtures("one")
def test_it_serves_a_reverse_proxy_on_a_unix_socket_under_the_name_that_browsers_see(
    script: ScriptedGateway, tmp_path: Path
) -> None:
    path = tmp_path / "console.sock"
    more = ("--gateway", script.url, "--origin", "https://console.example")
    with console(tmp_path, *more, listen=f"unix:{path}") as behind:
        assert (path.stat().st_mode & 0o777) == 0o600
        assert behind.ask("GET", STATUS, Origin="https://console.example").status_code == 200
        assert behind.ask("GET", STATUS, Origin="http://console.example").status_code == 403


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gateway", "http://127.0.0.1:1", "--listen", "0.0.0.0:3080"), "must be an address of this machine alone"),
        (("--gateway", "http://127.0.0.1:1", "--listen", "192.0.2.1:3080"), "must be an address of this machine alone"),
        (("--gateway", "http://gateway.example"), "not sent in clear to another machine"),
        (("--gateway", "unix:///run/a.sock"), "add --public-base-url"),
        (("--gateway", "http://127.0.0.1:1", "--listen", "unix:console.sock"), "add --origin"),
        (("--gateway", "http://127.0.0.1:1", "--origin", "https://console.example/here"), "without a path"),
        (("--gateway", "ftp://127.0.0.1"), "must be an http or https URL"),
    ],
)
def test_a_command_line_that_would_let_others_in_is_refused(arguments: tuple[str, ...], said: str) -> None:
    refused = refusal("console", *arguments)
    assert (refused.code, said in refused.sentence) == (2, True), refused.sentence


def test_without_a_running_gateway_it_says_how_to_name_one(tmp_path: Path) -> None:
    code, sentence = refused("--state-dir", str(tmp_path))
    assert (code, "Name the gateway" in sentence) == (69, True)
