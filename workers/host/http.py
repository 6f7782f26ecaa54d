"""The http host call: one request to where the plan allows, with the plan's secrets, and what came back.

Guarantees that a planned request is sent as it was planned and no other, that secrets go to the hosts they are bound
to and nowhere else (workers/host/added_secrets.py), and that an answer which repeats one reaches no guest. Going out
directly, the name that was allowed is resolved once, that very address connected to, and nothing private reached but
the networks that the plan names for it; through the egress proxy, nothing is resolved here and what is reached is the
proxy's to judge.
Redirects are answers like any other: nothing follows them. A request whose token is refused with 401 is sent once more
if the front has another one: once a call, within its deadline and its I/O budget, and both are observed.
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ipc.configuration.networks import PlanNetwork
from ipc.configuration.secret_ways import AsToken
from ipc.messages.calling import Observation
from ipc.network.addresses import split_address
from ipc.network.domains import matches
from ipc.network.framing_headers import is_framing_header
from ipc.network.reach import ReachRefused, may_send_plain, reach_of
from ipc.plan import Plan, PlannedTool
from workers.host.added_secrets import added_secrets
from workers.host.connection import connect
from workers.host.encoding import to_bytes
from workers.host.exchange import Exchange, may_share
from workers.host.layered import Stream
from workers.host.meter import HostError, Meter
from workers.host.network import NetworkContext
from workers.host.reflections import Reflections
from workers.host.tool_calls import Outgoing, ToolCall
from workers.host.tunnel import Proxy, tunnel
from workers.host.urls import MAX_URL_CHARACTERS, Target, parse_url
from workers.host.wire import USER_AGENT, Headers, Response, encode_request

DIRECT, PROXIED = "direct_allowlist", "proxy_allowlist"
"""The profiles that go out."""
MAX_REQUEST_HEADERS = 64
_METHOD = re.compile(r"[A-Z]{1,16}")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t -~]{0,8192}")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_UNAUTHORIZED = 401
RENEWAL_SECONDS = 10.0
"""A request whose token was refused waits no longer for another one, and for no more than half of its time."""

Renew = Callable[[str, float], str | None]
"""Asks within some seconds for another value of the secret with this name; None without one. Raises nothing."""


def no_other(_name: str, _seconds: float) -> None:
    """A `Renew` of calls that get no other token."""


class GuestRequest(NamedTuple):
    """The request of a guest. `timeout_ms` can only shorten the call's own deadline."""

    method: str
    url: str
    headers: Headers
    body: str
    body_encoding: str
    timeout_ms: int | None


class HttpHost:
    """Outgoing HTTP of one call."""

    def __init__(
        self, plan: Plan, secrets: Mapping[str, str], meter: Meter, outside: NetworkContext, *, is_approved: bool,
        renew: Renew = no_other,
    ) -> None:  # fmt: skip
        """`is_approved`: a person approved this very plan, and with it the domains that it calls unresolved."""
        self._plan = plan
        self._egress = plan.egress
        self._secrets = dict(secrets)
        self._reflections = Reflections(secrets)
        self._adds_secrets = any(use.way is not None and use.name in secrets for use in plan.secrets)
        self._meter = meter
        self._outside = outside
        self._renew: Renew | None = renew
        """None once it was asked: a call asks once."""
        self.answered: Headers = ()
        """Headers of the last answer."""
        # Through the proxy it is not ours to say where a name leads, so neither a port nor a secret follows from it.
        self._mapped = {} if plan.egress.profile == PROXIED else plan.egress.unsafe_resolve
        self._domains = plan.egress.allowed_domains + (plan.unresolved_domains if is_approved else ())

    def send(self, request: GuestRequest) -> Response:
        """Send one request. Raises HostError when no response came, IoBudgetExceeded when the call may not go on."""
        planned = self._plan.http_request
        if planned is None or not isinstance(planned.tool, PlannedTool):
            until = self._until(None if request.timeout_ms is None else request.timeout_ms / 1000)
            return self._answer(request.method, request.url, lambda: self._send(request, until), until)
        body = to_bytes(request.body, request.body_encoding)
        target = self._permitted(request, body)

        def carry(one: Outgoing) -> Response:
            until = self._until(one.seconds)
            return self._answer(one.method, request.url, lambda: self._exchange(target, one, until), until)

        return ToolCall(planned.tool, request.body, carry, self._meter, self._plan.max_response_bytes).run()

    def _until(self, seconds: float | None) -> float:
        """The end of a request that may take so long, by the call's own clock."""
        end = self._meter.deadline
        return end if seconds is None else min(end, time.monotonic() + seconds)

    def _answer(self, method: str, url: str, act: Callable[[], Response], until: float) -> Response:
        """The answer to a request; to the second one, if it is sent once more."""
        response = self._observed(method, url, act)
        if response.status != _UNAUTHORIZED or not self._has_other_token(parse_url(url).host, until):
            return response
        self._meter.note_resent()
        return self._observed(method, url, act)

    def _has_other_token(self, host: str, until: float) -> bool:
        """True if a token that this host has refused was replaced by another one."""
        tokens = (use for use in self._plan.secrets if isinstance(use.way, AsToken) and use.name in self._secrets)
        name = next((use.name for use in tokens if matches(host, use.domains)), None)
        seconds = min(RENEWAL_SECONDS, (until - time.monotonic()) / 2)
        if name is None or self._renew is None or not self._meter.has_more or seconds <= 0:
            return False
        renew, self._renew = self._renew, None
        value = renew(name, seconds)
        if value is None or value == self._secrets[name] or time.monotonic() >= until:
            return False
        self._secrets[name] = value
        self._reflections.add(name, value)
        return True

    def _observed(self, method: str, url: str, act: Callable[[], Response]) -> Response:
        self._meter.charge()
        target = f"{method[:16]} {url[:MAX_URL_CHARACTERS]}"
        try:
            response = act()
        except HostError as error:
            problem = f"{error.failure.kind}: {error.failure.message}"
            self._meter.observe(Observation("http", target, ok=False, error=problem))
            raise
        seen = "sha256:" + hashlib.sha256(response.body).hexdigest()
        self._meter.observe(
            Observation(
                "http", target, ok=True, status=response.status, bytes=len(response.body), body_sha256=seen
            )
        )  # fmt: skip
        self.answered = response.headers
        return response

    def _send(self, request: GuestRequest, until: float) -> Response:
        body = to_bytes(request.body, request.body_encoding)
        target = self._permitted(request, body)
        # SECURITY: with a planned request, its headers are sent and the guest's are not even looked at.
        planned = self._plan.http_request
        headers = planned.headers if planned is not None else request.headers
        outgoing = Outgoing(request.method, headers, body, self._plan.max_response_bytes)
        return self._exchange(target, outgoing, until)

    def _exchange(self, target: Target, one: Outgoing, deadline: float) -> Response:
        """Send a request that is permitted."""
        self._meter.remaining()
        added = added_secrets(self._plan, self._secrets, target, may_be_plain=self._may_be_plain(target))
        headers = self._headers(target, one, added.headers)
        # SECURITY: an egress proxy judges each call anew: a tunnel that is kept would outlast its list.
        is_direct = self._plan.egress.proxy_url is None
        # A worker that is for one call has no other to keep a connection for.
        is_shared = is_direct and self._plan.isolation != "process" and may_share(one.method, one.body)
        exchange = Exchange(
            open_stream=lambda: self._way(target, deadline),
            kept=self._outside.kept,
            key=self._outside.kept.key(self._plan, target, self._secrets, headers) if is_shared else None,
            method=one.method,
            deadline=deadline,
            max_body=one.max_body,
            is_enough=one.is_enough,
            meter=self._meter if one.has_effect else None,
        )
        if not is_shared:
            headers = (*headers, ("connection", "close"))
        request = encode_request(one.method, added.path_of(target), headers, one.body)
        return exchange.run(request, self._refuse_reflection)

    def _refuse_reflection(self, response: Response) -> None:
        """Raises HostError denied for an answer that holds a secret of this call, or in which one can't be found.

        SECURITY: before anything of the answer is observed, hashed or handed to the guest.
        """
        encodings = {value.strip().lower() for name, value in response.headers if name == "content-encoding"}
        if self._adds_secrets and response.body and not encodings <= {"", "identity"}:
            raise HostError("denied", "the upstream's answer is encoded, so that it can't be searched for secrets")
        found = self._reflections.found_in(response, self._meter.remaining) if self._secrets else None
        if found is not None:
            raise HostError("denied", f"the upstream's answer repeats the secret {found}")

    def _way(self, target: Target, deadline: float) -> Stream:
        """A new connection to the target: the way that the action's profile names, and no other."""
        if self._egress.profile == PROXIED:
            if self._egress.proxy_url is None:
                raise HostError("unavailable", "this action goes out through a proxy, and none is configured")
            is_new = target.host in self._plan.unresolved_domains
            patience = self._egress.proxy_patience_seconds if is_new else 0.0
            proxy = Proxy(self._egress.proxy_url, self._proxy_credentials())
            return tunnel(proxy, target, deadline, self._outside, patience)
        addresses, network = self._addresses(target, deadline)
        return connect(addresses, deadline, self._outside.tls_for(target, network), target.host)

    def _proxy_credentials(self) -> str | None:
        name = self._egress.proxy_secret
        if name is None:
            return None
        if name not in self._secrets:
            raise HostError("unavailable", "the credentials of the proxy were not given", name="secret_missing")
        return self._secrets[name]

    def _permitted(self, request: GuestRequest, body: bytes) -> Target:
        """Raises HostError denied unless the plan allows this request."""
        if self._egress.profile not in (DIRECT, PROXIED):
            raise HostError("denied", "the action has no egress")
        if not _METHOD.fullmatch(request.method) or request.method not in self._egress.allowed_methods:
            raise HostError("denied", "the method is not in the action's allowed methods")
        target = parse_url(request.url)
        if not matches(target.host, self._domains):
            raise HostError("denied", "the domain is not in the action's allowed domains")
        planned = self._plan.http_request
        if planned is None:
            if not target.has_own_port and target.host not in self._mapped:
                raise HostError("denied", "a port of its own is only for a request that the action's template names")
        elif (request.method, request.url, body) != (planned.method, planned.url, (planned.body or "").encode()):
            raise HostError("denied", "the request is not the one that was planned")
        return target

    def _headers(self, target: Target, one: Outgoing, secret: Headers) -> Headers:
        taken = {name for name, _ in secret}
        if self._adds_secrets:  # an answer that is compressed can't be searched for them
            taken.add("accept-encoding")
            secret = (("accept-encoding", "identity"), *secret)
        headers = [(name.lower(), value) for name, value in one.headers if name.lower() not in taken]
        _check_headers(headers)
        names = {name for name, _ in headers} | taken
        defaults = [("user-agent", USER_AGENT), ("accept", "*/*"), ("accept-encoding", "identity")]
        length = [("content-length", str(len(one.body)))] if one.body or one.method in _WITH_BODY else []
        return (
            ("host", target.authority),
            *length,
            *(entry for entry in defaults if entry[0] not in names),
            *headers,
            *secret,
        )

    def _may_be_plain(self, target: Target) -> bool:
        """True if secrets may be sent to the target without TLS."""
        return target.host in self._mapped or may_send_plain(target.host, self._egress.networks)

    def _addresses(self, target: Target, deadline: float) -> tuple[list[tuple[str, int]], PlanNetwork | None]:
        """Where to connect, and the private network that it lies in: resolved once, here, and never again for this
        request."""
        mapped = self._mapped.get(target.host)
        if mapped is not None:
            try:
                return [split_address(mapped)], None
            except ValueError:
                raise HostError("internal", "egress.unsafe_resolve names no address for this host") from None
        left = deadline - time.monotonic()
        found = self._outside.resolver.resolve(target.host, left)
        try:
            reach = reach_of(target.host, target.port, found, self._egress.networks, self._outside.own_servers)
        except ReachRefused as error:
            raise HostError("denied", str(error)) from None
        return [(address, target.port) for address in reach.addresses], reach.network


def _check_headers(headers: list[tuple[str, str]]) -> None:
    """Raises HostError invalid-input for what could end a line, begin another request, or change the framing."""
    if len(headers) > MAX_REQUEST_HEADERS:
        raise HostError("invalid-input", "the request has too many headers")
    for name, value in headers:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise HostError("invalid-input", "a header of the request can't be sent")
        if is_framing_header(name):
            raise HostError("invalid-input", f"the header {name} is the host's own")
