"""From a request to its row of the table and back with the answer.

The order is the same for every row: path, method, media type, who is asking, rate, identifiers in the path, query,
body, handler. So a caller that may not ask learns neither what exists nor what a body should be. Paths are compared
as they were sent: nothing is decoded, joined or cut. A path that exists on the other socket only is unknown on this
one. In dev mode, and where metrics are read by TCP, a request over TCP that was meant for another host ends before all
that. Every GateError becomes the answer of the error table.
"""

from collections.abc import Sequence

import msgspec

from frontend.api.openapi.document import document
from frontend.api.route import Auth, Route
from frontend.api.routes import ROUTES, SCRAPED
from frontend.auth.authentication import Caller, OperatorCaller
from frontend.auth.hosts import OwnHosts, own_hosts
from frontend.contract.identifiers import IDENTIFIERS, Identifier
from frontend.errors import GateError
from frontend.http.answers import Answer, error_answer, json_answer, traced
from frontend.http.requests import Request
from frontend.services import Services
from frontend.telemetry.families import OTHER
from frontend.telemetry.logs import begin_trace, log, trace_now

KNOWN_PATHS = 1024
"""Paths whose rows a table remembers, the oldest leaving first."""
MAX_KNOWN_CHARACTERS = 200
MAX_SHOWN_PATH = 256
"""Characters of a path in a line of the log: clients choose it."""


class Match(msgspec.Struct, frozen=True):
    """A row that has a request's path. `segments` are the raw open segments with what each has to be."""

    route: Route
    segments: tuple[tuple[str, Identifier], ...] = ()

    def identifiers(self) -> list[str]:
        """The identifiers in the path. Raises GateError, 404, for what can't be one, where the route itself leaves no
        evidence of that."""
        if self.route.leaves_evidence_of_any_name:
            return [segment for segment, _ in self.segments]
        return [kind.read(segment) for segment, kind in self.segments]


class RouteTable:
    """The routes of one listener kind (client, admin, merged or metrics), indexed for dispatch."""

    def __init__(self, listener: str, routes: tuple[Route, ...] = ROUTES) -> None:
        self._fixed: dict[str, list[Match]] = {}
        self._open: dict[int, list[tuple[list[str], Route]]] = {}
        self._known: dict[str, tuple[Match, ...]] = {}
        for route in routes:
            if listener != "merged" and listener not in route.sockets:
                continue
            if "{" in route.path:
                segments = route.path.split("/")
                self._open.setdefault(len(segments), []).append((segments, route))
            else:
                self._fixed.setdefault(route.path, []).append(Match(route))

    def find(self, path: str) -> tuple[Match, ...]:
        """Rows of this path, whatever their method; those without open segments come first."""
        known = self._known.get(path)
        if known is None:
            known = self._rows(path)
            if known and len(path) <= MAX_KNOWN_CHARACTERS:
                if len(self._known) >= KNOWN_PATHS:
                    del self._known[next(iter(self._known))]
                self._known[path] = known
        return known

    def _rows(self, path: str) -> tuple[Match, ...]:
        matches = list(self._fixed.get(path, ()))
        given = path.split("/")
        for wanted, route in self._open.get(len(given), ()):
            pairs = list(zip(wanted, given, strict=True))
            if all(want == have or (want.startswith("{") and have) for want, have in pairs):
                segments = [(have, IDENTIFIERS[want[1:-1]]) for want, have in pairs if want.startswith("{")]
                matches.append(Match(route, tuple(segments)))
        return tuple(matches)


class Dispatch:
    """Answers requests of all listeners over the one table."""

    def __init__(self, services: Services) -> None:
        self._services = services
        services.describe = lambda: document(ROUTES)
        routes = tuple(route for route in ROUTES if services.settings.dev_mode or route.auth is not Auth.DEV)
        self._own: dict[str, OwnHosts] = own_hosts(services.settings)
        self._tables = {kind: RouteTable(kind, routes) for kind in ("client", "admin", "merged")}
        self._tables["metrics"] = RouteTable("metrics", SCRAPED)

    async def respond(self, request: Request) -> Answer:
        """The answer to one request. GateErrors become their row of the error table; anything else is ours to fix."""
        begin_trace()
        matches = self._tables[request.listener].find(request.path)
        path, method = _row(matches, request)
        try:
            answer = await self._answer(request, matches)
        except GateError as error:
            if self._services.settings.dev_mode and error.status == 401 and error.cause is not None:
                error.extra.setdefault("reason", error.cause)  # dev mode: a client's author learns what to mend
            answer = error_answer(error)
            if error.status >= 500 and not error.is_told and self._has_line(request, error):
                shown = request.path[:MAX_SHOWN_PATH]
                log.warning("answered with an error", code=error.code, path=shown, cause=error.cause)
            self._services.metrics.refused(path, error.code)
            # Its frames hold the error and the parsed body: a cycle that would stay until the garbage collector's turn,
            # which every other request waits for.
            error.__traceback__ = None
        self._services.metrics.answered(path, method, answer.status)
        return traced(answer, trace_now())  # of a decision on a held call, that of the call

    def _has_line(self, request: Request, error: GateError) -> bool:
        """True if the error gets a log line: always with a cause, else as far as the bound on lines allows."""
        return error.cause is not None or self._services.refusals.lines.may_say(request.uid, error.code)

    async def _answer(self, request: Request, matches: Sequence[Match]) -> Answer:
        if (own := self._own.get(request.listener)) is not None:
            own.check(request)
        if not matches:
            raise GateError("not_found")
        method = "GET" if request.method == "HEAD" else request.method
        allowed = [match for match in matches if match.route.method == method]
        if not allowed:
            return _wrong_method(matches)
        match = allowed[0] if len(allowed) == 1 else _by_credential(allowed, request)
        if method != "GET":
            _check_media_type(request)
        route = match.route
        caller: Caller | OperatorCaller | None = None
        if route.auth is Auth.LEASE:
            caller = await self._services.authentication.agent(request)
        elif route.auth is Auth.OPERATOR:
            caller = await self._operator(request, may_be_copied=route.tells_of_outages)
            self._services.rates.take(route.rate.value, caller.name)
            return await self._to_operator(request, caller, match)
        return await route.operation.answer(self._services, request, caller, match.identifiers())

    async def _operator(self, request: Request, *, may_be_copied: bool) -> OperatorCaller:
        try:
            return await self._services.authentication.operator(request, may_be_copied=may_be_copied)
        except GateError as error:
            await self._services.refused_operators.note(request, error)
            raise

    async def _to_operator(self, request: Request, operator: OperatorCaller, match: Match) -> Answer:
        route = match.route
        try:
            operator.require_role(route.roles)
            return await route.operation.answer(self._services, request, operator, match.identifiers())
        except GateError as error:
            await self._services.refused_operators.note(request, error)
            raise


def _row(matches: Sequence[Match], request: Request) -> tuple[str, str]:
    """Path and method of the row, for metrics: never what the client has sent, which may be anything."""
    method = "GET" if request.method == "HEAD" else request.method
    for match in matches:
        if match.route.method == method:
            return match.route.path, method
    return matches[0].route.path if matches else OTHER, OTHER


def _wrong_method(matches: Sequence[Match]) -> Answer:
    methods = {match.route.method for match in matches}
    methods |= {"HEAD"} if "GET" in methods else set()
    return json_answer(405, {"error": "method_not_allowed"}, (("Allow", ", ".join(sorted(methods))),))


def _check_media_type(request: Request) -> None:
    """A body that says what it is must say JSON, and no coding of it. Raises GateError unsupported_media_type.

    An empty body may be called anything: some clients name a form's type whenever they POST. A body without a type is
    taken for what this interface speaks.
    """
    types, codings, has_body = [], set[str](), False
    for name, value in request.headers:
        if name == "content-type":
            types.append(value)
        elif name == "content-encoding":
            codings.update(coding.strip().lower() for coding in value.split(","))
        elif name == "transfer-encoding" or (name == "content-length" and value.strip("0 ")):
            has_body = True
    if has_body and types and [one.partition(";")[0].strip().lower() for one in types] != ["application/json"]:
        raise GateError("unsupported_media_type")
    if has_body and not codings <= {"", "identity"}:
        raise GateError("unsupported_media_type", message="a body has no Content-Encoding: send it as it is")


def _by_credential(matches: Sequence[Match], request: Request) -> Match:
    """On the merged address a path may serve agents and operators: the kind of credential tells whom."""
    value = next((value for name, value in request.headers if name == "authorization"), "")
    token = value.partition(" ")[2].strip(" ")
    is_lease = token.startswith("eyJ") and token.count(".") == 2  # a compact JWS
    wanted = Auth.LEASE if is_lease else Auth.OPERATOR
    return next((match for match in matches if match.route.auth is wanted), matches[0])
