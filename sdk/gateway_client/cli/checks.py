"""The checks of `gatectl doctor`: each gives one row and runs whatever the others find.

Guarantees that no row holds a key, and that nothing is changed by looking.
"""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx

from gateway_client.agents import AgentClient
from gateway_client.calling.core import Limits
from gateway_client.cli.complaints import line_of
from gateway_client.cli.contexts.settings import FIRST, CliSettings
from gateway_client.cli.desk import CliContext
from gateway_client.cli.display.safe import plain, safe
from gateway_client.cli.exits import Failure
from gateway_client.contract.health import Readiness
from gateway_client.errors import GatewayError
from gateway_client.keys import KeyFileError, check_private
from gateway_client.operators import OperatorClient
from gateway_client.running.deadlines import DeadlineTransport, until
from gateway_client.running.sending import FAILURES, tls_context
from gateway_client.wire.address import Address

OK, WARN, FAIL = "ok", "warn", "fail"
CLOCK_WARN, CLOCK_FAIL = 2.0, 5.0
"""Seconds. Beyond 5 in the future, or 60 in the past, the gateway refuses proofs; its `Date` is whole seconds."""
CLOCK_PAST = 55.0
HEAD_SECONDS = 5.0
"""For a whole head, however slowly it comes."""
_LOG = "the gateway's log"
_WITHOUT = "sandbox without "
"""How status names a wall that is missing."""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """The result of one check. `mend`: the next step; it may be empty."""

    check: str
    result: str
    found: str
    mend: str = ""


def checks(desk: CliContext) -> Iterator[CheckRow]:
    """All rows, in the order in which trouble is best looked for."""
    settings = desk.settings
    yield _contexts_file(settings)
    try:
        address = settings.address()
    except Failure as error:
        yield CheckRow("address", FAIL, error.message, error.mend)
        yield from _key_files(settings)
        return
    if address.socket is not None:
        yield _socket(Path(address.socket))
    yield from _reachable(address)
    yield from _agents_socket(settings, address)
    yield from _key_files(settings)
    yield from _operated(desk)


def _contexts_file(settings: CliSettings) -> CheckRow:
    file = settings.file
    try:
        status = file.stat()
        count = len(settings.contexts.by_name)
    except FileNotFoundError:
        if settings.is_running_dev:
            return CheckRow("context file", OK, "none is needed: gateway dev runs here")
        return CheckRow("context file", WARN, f"{file} is not there", FIRST)
    except OSError as error:
        return CheckRow("context file", FAIL, f"{file}: {error.strerror}", "see its owner and mode")
    except Failure as error:
        return CheckRow("context file", FAIL, error.message, error.mend)
    if status.st_mode & 0o077:
        return CheckRow("context file", WARN, f"others can read {file}", f"chmod 600 {file}")
    return CheckRow("context file", OK, f"{file}, {count} contexts, mode 0600")


def _socket(path: Path) -> CheckRow:
    try:
        status = path.stat()
    except OSError as error:
        return CheckRow(
            "socket", FAIL, f"{path}: {error.strerror}", "is the gateway running? is this user in its group?"
        )
    if not stat.S_ISSOCK(status.st_mode):
        return CheckRow("socket", FAIL, f"{path} is not a socket", "mend address of the context")
    mode = f"mode {status.st_mode & 0o777:04o}"
    if status.st_mode & 0o007:
        return CheckRow("socket", FAIL, f"{path}: everybody may connect ({mode})", f"chmod o-rwx {path}")
    if not os.access(path, os.R_OK | os.W_OK):
        return CheckRow("socket", FAIL, f"{path}: you may not connect ({mode})", "join the socket's group")
    return CheckRow("socket", OK, f"{path}, {mode}")


def _agents_socket(settings: CliSettings, operators: Address) -> Iterator[CheckRow]:
    try:
        address = settings.address("agent_address")
    except Failure as error:
        yield CheckRow("agent socket", FAIL, error.message, error.mend)
        return
    if address.socket is not None and address.socket != operators.socket:
        yield replace(_socket(Path(address.socket)), check="agent socket")


def _reachable(address: Address) -> Iterator[CheckRow]:
    where = address.socket or address.origin
    mend = "is the gateway running, is the address right?"
    try:
        with AgentClient(address, limits=Limits(timeout=5.0)) as client:  # bounded, whatever answers
            before = time.monotonic()
            is_well = client.health()
            took = time.monotonic() - before
    except GatewayError as error:
        yield CheckRow("reachable", FAIL, f"{where}: {safe(error)}", mend)
        return
    if not is_well:
        yield CheckRow("reachable", FAIL, f"{where} does not answer ok", mend)
        return
    yield CheckRow("reachable", OK, f"{where} answers in {took * 1000:.0f} ms")
    transport = DeadlineTransport(address, tls_context(address))
    try:
        with until(time.monotonic() + HEAD_SECONDS), httpx.Client(
            transport=transport, base_url=address.origin, timeout=HEAD_SECONDS, trust_env=False
        ) as second:  # fmt: skip
            first = datetime.now(UTC)
            with second.stream("GET", "/healthz") as answer:  # its body is not read: it may have no end
                date = answer.headers.get("date", "")
            row = _clock(date, first, datetime.now(UTC))
    except FAILURES as error:
        row = CheckRow("clock", WARN, f"the second answer failed: {type(error).__name__}", "look at the network")
    yield row


def _clock(date: str, before: datetime, after: datetime) -> CheckRow:
    try:
        theirs = parsedate_to_datetime(date)
        ours_early, ours_late = (before - theirs).total_seconds(), (after - theirs).total_seconds()
    except (ValueError, TypeError):
        return CheckRow("clock", WARN, "the gateway does not say what time it has", "compare the clocks by hand")
    # Their whole second began up to a second before they wrote it: only what lies outside of that is a difference.
    ahead = ours_early - 1 if ours_early > 1 else min(ours_late, 0.0)
    if abs(ahead) < CLOCK_WARN:
        return CheckRow("clock", OK, "within two seconds of the gateway's")
    word = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the gateway's"
    is_fatal = ahead > CLOCK_FAIL - 1 or ahead < -CLOCK_PAST
    return CheckRow(
        "clock", FAIL if is_fatal else WARN, f"this host's clock is {word}", "let both hosts follow a time server"
    )


def _key_files(settings: CliSettings) -> Iterator[CheckRow]:
    for member, name in (("operator_key_file", "operator key"), ("private_key_file", "private key")):
        try:
            file = settings.key_file(member)
            status = file.stat()
        except Failure as error:
            yield CheckRow(name, FAIL, error.message, error.mend)
            continue
        except OSError as error:
            yield CheckRow(name, FAIL, f"{error.filename}: {error.strerror}", f"mend {member} of the context")
            continue
        try:
            check_private(str(file), status)
        except KeyFileError as error:
            yield CheckRow(name, FAIL, str(error), f"chmod 600 {file}, and take new keys; or use a file of your own")
        else:
            yield CheckRow(name, OK, f"{file}, mode {status.st_mode & 0o777:04o}")


def _operated(desk: CliContext) -> Iterator[CheckRow]:
    try:
        with desk.operator(timeout=10.0) as operator:
            status = operator.status()
            yield CheckRow("credential", OK, "the gateway knows this operator")
            yield from _readiness(operator)
    except (GatewayError, Failure) as error:
        text, _, mend = line_of(error).removeprefix("gatectl: ").partition(" - ")
        mend = mend.removesuffix("gatectl doctor").rstrip(": ")
        yield CheckRow("credential", FAIL, text, mend or "mend what fails above")
        return
    if status.weakened:
        yield CheckRow("settings", WARN, f"weakened: {plain(status.weakened)}", "fine for trying; not in production")
    else:
        yield CheckRow("settings", OK, "nothing is weakened")
    missing = [name.removeprefix(_WITHOUT) for name in status.weakened if name.startswith(_WITHOUT)]
    yield (
        CheckRow("sandbox", WARN, f"workers lack: {plain(missing)}", "run gateway doctor on its machine")
        if missing
        else CheckRow("sandbox", OK, "all walls around workers stand")
    )
    draining = f"{status.in_flight_executions} calls in flight"
    yield (
        CheckRow("draining", WARN, f"refuses new work, {draining}", "restart the gateway: a drain is not taken back")
        if status.draining
        else CheckRow("draining", OK, f"no, {draining}")
    )
    count = status.unresolved_intents
    if count is None:
        yield CheckRow("unresolved intents", WARN, "the gateway can't say", "look at the ledger's disk")
    else:
        mend = "gatectl intents: ask the upstream what came of them" if count else ""
        yield CheckRow("unresolved intents", WARN if count else OK, str(count), mend)


def _readiness(operator: OperatorClient) -> Iterator[CheckRow]:
    try:
        ready = operator.ready()
    except GatewayError as error:
        yield CheckRow("readiness", FAIL, safe(error), "see the gateway's log")
        return
    # A drain is an operator's wish, told in a row of its own; dependencies that are down have theirs.
    is_draining = ready.raw.get("draining") is True
    result = WARN if is_draining else {"ready": OK, "degraded": WARN}.get(ready.status, FAIL)
    yield CheckRow(
        "readiness", result, safe(ready.status), "" if result == OK else "see the rows below, and the gateway's log"
    )
    names = {
        "key-value store": ready.redis, "policy engine": ready.opa, "ledger": ready.ledger,
        "approval store": ready.approval_store, "egress proxy": ready.egress_proxy,
    }  # fmt: skip
    for name, is_up in names.items():
        if is_up:
            yield CheckRow(name, OK, "answers")
        elif is_up is not None:
            stops = "calls that need it fail" if name == "egress proxy" else "calls are refused"
            yield CheckRow(name, FAIL, f"is down: {stops}", f"docs/failure-modes.md; {_LOG} names the cause")
        elif name != "egress proxy":
            yield CheckRow(name, WARN, "the gateway does not say", _LOG)
    yield from _stops(ready)


def _stops(ready: Readiness) -> Iterator[CheckRow]:
    """Rows for further causes that refuse every call. An earlier gateway does not tell each of them."""
    if ready.ledger_full:
        mend = "make room on it: docs/runbooks/full-disk.md"
        yield CheckRow("ledger volume", FAIL, "full: calls and leases are refused", mend)
    elif ready.ledger_full is not None:
        yield CheckRow("ledger volume", OK, "has room")
    wrong = ready.clock_error
    if wrong is not None:
        until = "" if wrong.until is None else f" until {safe(wrong.until)}"
        mend = 'set the clock of its host; where it is right: docs/operations.md, "The clock was ahead"'
        yield CheckRow("gateway's clock", FAIL, f"calls are refused{until}: {safe(wrong.cause)}", mend)
    else:
        yield CheckRow("gateway's clock", OK, "fits the evidence")
    if ready.crash_loops:
        result = WARN if ready.is_ready else FAIL  # a deliverer, say: calls do without
        yield CheckRow("crash loops", result, plain(ready.crash_loops), f"gateway ps on its machine, and {_LOG}")
    else:
        yield CheckRow("crash loops", OK, "none")
