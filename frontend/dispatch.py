"""From a request to its row of the table and back with the answer.

Finds the row, checks its authentication and rate, calls its handler, turns every GateError into the answer of the
error table. A path that exists on the other socket only is unknown on this one.
"""

import structlog

from frontend.errors import GateError
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.routes import ROUTES, Auth, Route

log = structlog.get_logger()


class Table:
    """The routes of one listener kind (client, admin or merged), indexed for dispatch."""

    def __init__(self, listener: str, routes: tuple[Route, ...] = ROUTES) -> None:
        self._fixed: dict[str, list[Route]] = {}
        self._open: dict[int, list[tuple[list[str], Route]]] = {}
        for route in routes:
            if listener != "merged" and listener not in route.sockets:
                continue
            if "{" in route.path:
                segments = route.path.split("/")
                self._open.setdefault(len(segments), []).append((segments, route))
            else:
                self._fixed.setdefault(route.path, []).append(route)

    def find(self, path: str) -> tuple[list[Route], tuple[str, ...]]:
        """Rows of this path, whatever their method, and the values of its open segments."""
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed, ()
        given = path.split("/")
        found: list[Route] = []
        values: tuple[str, ...] = ()
        for segments, route in self._open.get(len(given), ()):
            if all(want == have or want.startswith("{") for want, have in zip(segments, given, strict=True)):
                found.append(route)
                values = tuple(have for want, have in zip(segments, given, strict=True) if want.startswith("{"))
        return found, values


class Dispatch:
    """Answers requests of all listeners over the one table."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._tables = {kind: Table(kind) for kind in ("client", "admin", "merged")}

    async def respond(self, request: Request) -> Answer:
        """The answer to one request. GateErrors become their row of the error table; anything else is ours to fix."""
        structlog.contextvars.unbind_contextvars("trace_id")
        try:
            return await self._answer(request)
        except GateError as error:
            trace_id = structlog.contextvars.get_contextvars().get("trace_id")
            if trace_id is not None:  # a decision: it has said its own line
                return json_answer(error.status, error.body(), (*error.headers(), ("X-Trace-Id", trace_id)))
            if error.status >= 500:
                log.warning("answered with an error", code=error.code, path=request.path, cause=error.cause)
            return json_answer(error.status, error.body(), error.headers())

    async def _answer(self, request: Request) -> Answer:
        routes, values = self._tables[request.listener].find(request.path)
        if not routes:
            raise GateError("not_found")
        method = "GET" if request.method == "HEAD" else request.method
        allowed = [route for route in routes if route.method == method]
        if not allowed:
            return _wrong_method(routes)
        route = allowed[0] if len(allowed) == 1 else _by_credential(allowed, request)
        if method != "GET":
            _check_media_type(request)
        if route.auth is Auth.NONE:
            self._house.rates.take(route.rate.value)
            return await route.handler(self._house, request, *values)
        if route.auth is Auth.PIPELINE:
            return await route.handler(self._house, request, *values)
        if route.auth is Auth.LEASE:
            caller = await self._house.authentication.agent(request)
            return await route.handler(self._house, request, caller, *values)
        operator = await self._house.authentication.operator(request)
        self._house.rates.take(route.rate.value)
        return await route.handler(self._house, request, operator, *values)


def _wrong_method(routes: list[Route]) -> Answer:
    methods = sorted({route.method for route in routes} | {"HEAD" for route in routes if route.method == "GET"})
    return json_answer(405, {"error": "method_not_allowed"}, (("Allow", ", ".join(methods)),))


def _check_media_type(request: Request) -> None:
    """A body that says what it is must say JSON. Raises GateError unsupported_media_type.

    An empty body may be called anything: some clients name a form's type whenever they POST. A body without a type is
    taken for what this interface speaks.
    """
    types, has_body = [], False
    for name, value in request.headers:
        if name == "content-type":
            types.append(value)
        elif name == "transfer-encoding" or (name == "content-length" and value.strip("0 ")):
            has_body = True
    if has_body and types and [one.partition(";")[0].strip().lower() for one in types] != ["application/json"]:
        raise GateError("unsupported_media_type")


def _by_credential(routes: list[Route], request: Request) -> Route:
    """On the merged address a path may serve agents and operators: the kind of credential tells whom."""
    value = next((value for name, value in request.headers if name == "authorization"), "")
    token = value.partition(" ")[2].strip(" ")
    is_lease = token.startswith("eyJ") and token.count(".") == 2  # a compact JWS
    wanted = Auth.LEASE if is_lease else Auth.OPERATOR
    return next((route for route in routes if route.auth is wanted), routes[0])
