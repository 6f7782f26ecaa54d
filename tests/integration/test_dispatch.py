"""The table of endpoints behind real listeners: the rows of each listener, and the answers to odd paths and to HEAD.

Methods, credentials and queries row by row stand in tests/frontend/api/test_routes.py; who may call what with a real
lease or key, in tests/conformance/test_auth_models.py.
"""

import re

import httpx
import pytest

from frontend.api.route import Auth, Rate, Route
from frontend.api.routes import ROUTES
from tests.support.gateway import Bearer, Gateway, Prover

LISTENERS = ("client", "admin", "merged")
SEGMENTS = {
    "{action_id}": "text_digest", "{approval_id}": "apr_1", "{receipt_id}": "rcpt_1", "{principal}": "dev:anonymous",
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("unharmed")


@pytest.fixture(scope="module")
def doors(gate: Gateway) -> dict[str, httpx.Client]:
    """One client a listener."""
    return {"client": gate.over("client_socket"), "admin": gate.over("admin_socket"), "merged": gate.http}


@pytest.fixture(scope="module")
def caller(gate: Gateway) -> Bearer:
    return gate.agent()


@pytest.fixture(scope="module")
def operator(gate: Gateway) -> Bearer:
    return gate.operator()


def a_path(route: Route) -> str:
    path = route.path
    for name, value in SEGMENTS.items():
        path = path.replace(name, value)
    return path


def rows_at(listener: str, path: str) -> list[Route]:
    """Every row that this listener has for a path, by the table alone."""
    return [
        route
        for route in ROUTES
        if (listener == "merged" or listener in route.sockets)
        and re.fullmatch(re.sub(r"{\w+}", "[^/]+", route.path), path)
    ]


def refused(answer: httpx.Response, status: int, code: str) -> None:
    """An error as every error is: its status, JSON, its code."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.json()["error"] == code
    if status == 401:
        assert answer.headers["www-authenticate"] == "DPoP"


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_listener_has_its_own_rows_and_no_others(doors: dict[str, httpx.Client], listener: str) -> None:
    """Told by a method that no row has: 405 names the methods that a path has there, an unknown path is 404."""
    for path in sorted({a_path(route) for route in ROUTES}):
        answer = doors[listener].options(path)
        methods = {row.method for row in rows_at(listener, path)}
        if not methods:
            refused(answer, 404, "not_found")
            continue
        refused(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set()))), path


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method != "GET"], ids=lambda route: f"{route.method} {route.path}"
)
def test_a_body_of_another_type_is_415_whoever_sends_it(doors: dict[str, httpx.Client], route: Route) -> None:
    for listener in (*route.sockets, "merged"):
        answer = doors[listener].request(
            route.method, a_path(route), content=b"x=1", headers={"Content-Type": "text/plain"}
        )
        refused(answer, 415, "unsupported_media_type")


def test_what_nobody_may_see_looks_the_same_whether_or_not_it_exists(gate: Gateway) -> None:
    """Without credentials, or with a stranger's."""
    agent = gate.agent()
    held = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": 1, "currency": "EUR"}).json()
    done = agent.execute("text_digest", {"text": "x"}).json()
    stranger = Bearer(gate.http, gate.base, "key-nobody-" + "0" * 32, Prover())
    for there, nowhere in (
        (f"/v1/approvals/{held['approval_id']}", "/v1/approvals/apr_nowhere"),
        (f"/v1/receipts/{done['receipt_id']}", "/v1/receipts/rcpt_nowhere"),
        (f"/v1/approvals/{held['approval_id']}/poll", "/v1/approvals/apr_nowhere/poll"),
        ("/v1/admin/policy/dev:anonymous", "/v1/admin/policy/nobody"),
    ):
        for with_credentials in (False, True):
            answers = []
            for path in (there, nowhere):
                answer = gate.http.get(path, headers=stranger.headers("GET", path) if with_credentials else {})
                own = ("date", "x-trace-id")  # of each answer
                headers = {name: value for name, value in answer.headers.items() if name not in own}
                answers.append((answer.status_code, headers, answer.content))
            assert answers[0] == answers[1]
            assert answers[0][0] == 401


# ------------------------------------------------------------------ paths

ODD_PATHS = (
    "/", "//", "/v1", "/v1/", "/v2/actions", "/v1/actions/", "/v1//actions", "//v1/actions", "/V1/actions",
    "/v1/actions//", "/v1/./actions", "/v1/../v1/actions", "/./v1/actions", "/v1/actions/../actions", "/v1%2Factions",
    "/v1/%61ctions", "/%761/actions", "/v1/actions;x=1", "/v1/actions%00", "/v1/actions%3Flimit=1", "/healthz/",
    "/healthz//", "/healthz.", "/healthz%20", "/HEALTHZ", "/.well-known/jwks.json/", "/v1/admin", "/v1/admin/",
    "/v1/approvals/a/b/c", "/v1/actions/a/schema", "/v1/actions/a/schema/response", "/docs", "/openapi.json/",
    "/.well-known/../healthz", "/v1/actions/a/execute/", "/" + "a" * 8000, "/" * 200, "/v1/actions/" + "a/" * 300,
)  # fmt: skip


@pytest.mark.parametrize("path", ODD_PATHS, ids=lambda path: path[:40])
def test_a_path_is_compared_as_it_was_sent_and_this_one_is_none_of_ours(gate: Gateway, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        refused(gate.http.send(raw_request(gate.http, method, path)), 404, "not_found")
    answer = gate.http.send(raw_request(gate.http, "HEAD", path))
    assert (answer.status_code, answer.content) == (404, b"")


def raw_request(http: httpx.Client, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Request:
    """A request whose path goes out as it stands here: no client mends it."""
    built = http.build_request(method, "/", headers=headers)
    built.extensions["target"] = path.encode()
    return built


NO_IDENTIFIERS = (
    "..", ".", "-x", "_x", "%74ext_digest", "text_digest%00", "text%2Fdigest", "a" * 257, "text_digest;v=1", "a,b",
    "a b".replace(" ", "%20"), "a+b", "*", "%2e%2e", "a%0d%0aX:1", "a!", "~a", "(a)", "a$b",
)  # fmt: skip


NAMING_ROWS = [route for route in ROUTES if "_id}" in route.path]


@pytest.mark.parametrize("segment", NO_IDENTIFIERS, ids=lambda segment: segment[:20])
def test_what_is_no_identifier_names_nothing(gate: Gateway, caller: Bearer, operator: Bearer, segment: str) -> None:
    who = {Auth.OPERATOR: operator, Auth.LEASE: caller, Auth.PIPELINE: caller}
    codes = {
        f"{noun}_id": f"{noun}_not_found" for noun in ("action", "approval", "receipt", "intent", "session", "standing")
    }
    for route in NAMING_ROWS:
        (name,) = re.findall(r"{(\w+)}", route.path)
        path = re.sub(r"{\w+}", lambda _found: segment, route.path)
        bearer = who.get(route.auth)
        if bearer is operator:
            (gate.paces.writes if route.rate is Rate.WRITE else gate.paces.reads).wait()
        headers = bearer.headers(route.method, path) if bearer else None
        refused(gate.http.send(raw_request(gate.http, route.method, path, headers)), 404, codes[name])


@pytest.mark.parametrize("name", ["dev:anonymous", "dev%3Aanonymous", "dev%3aanonymous"])
def test_a_principal_may_hold_a_colon_however_it_is_spelt(gate: Gateway, operator: Bearer, name: str) -> None:
    path = f"/v1/admin/policy/{name}"
    answer = gate.http.send(raw_request(gate.http, "GET", path, operator.headers("GET", path)))
    assert (answer.status_code, answer.json()["principal"]) == (200, "dev:anonymous")


@pytest.mark.parametrize("name", ["dev%253Aanonymous", "%64ev:anonymous", "grant", "..", "a" * 257, "-", "a%40b"])
def test_a_principal_that_nobody_is_is_404(gate: Gateway, operator: Bearer, name: str) -> None:
    path = f"/v1/admin/policy/{name}"
    answer = gate.http.send(raw_request(gate.http, "GET", path, operator.headers("GET", path)))
    refused(answer, 404, "principal_not_found")


# ------------------------------------------------------------------ HEAD


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "GET"], ids=lambda route: f"{route.path} {route.auth.value}"
)
def test_head_is_answered_where_get_is_without_a_body(
    gate: Gateway, caller: Bearer, operator: Bearer, route: Route
) -> None:
    path = a_path(route)
    bearer = {Auth.OPERATOR: operator, Auth.LEASE: caller}.get(route.auth)
    statuses = []
    for method in ("HEAD", "GET"):
        answer = gate.http.request(method, path, headers=bearer.headers(method, path) if bearer else None)
        statuses.append((answer.status_code, answer.headers["content-type"]))
        assert (answer.content == b"") == (method == "HEAD")
        assert int(answer.headers["content-length"]) > 0
    assert statuses[0] == statuses[1]
    if bearer is not None:  # a proof for GET is not valid for HEAD
        refused_head = gate.http.head(path, headers=bearer.headers("GET", path))
        assert refused_head.status_code == 401
