"""One call: one store, one instance, one run, one outcome.

Owns the order of a call: word, module, execution, output, verification. Guarantees that a plan runs only under the
notary's word for its very hash, that a store never serves twice, and that every path ends in a Result. Holds the
secrets of one call for its length.
"""

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wasmtime import Engine, Store, WasmtimeError

from ipc.messages.attesting import Permit
from ipc.messages.calling import Call, FailureName, Observation, ProviderFailure, Result, Verification
from ipc.plan import Plan, ResponseRules, hash_of
from workers.host.calls import HostCalls, HostFunctions
from workers.host.fs import FileHost
from workers.host.guest_log import GuestLog
from workers.host.http import HttpHost, Renew, no_other
from workers.host.idempotency import with_intent_id
from workers.host.meter import Meter
from workers.host.network import NetworkContext
from workers.host.space import FileSpace
from workers.host.wire import Headers
from workers.runtime.deadline import set_deadline
from workers.runtime.entry import TooLong, call_entry
from workers.runtime.modules import Module
from workers.runtime.output import BadOutput, parse_output
from workers.runtime.shaping import shaped
from workers.runtime.ticker import EpochTicker
from workers.runtime.traps import classify, describe, is_refused_memory, memory_of, remaining_fuel
from workers.sandbox.profiles import MAX_GUEST_MEMORY_MB, MIB, Profile
from workers.verifiers.schema import SchemaViolated, check_schema
from workers.verifiers.verify import FAILED_BEFORE, verify

ERROR_STATUS: Final = 400
"""An upstream says from here on that it did not do as it was asked (RFC 9110 §15)."""
MAX_INSTANCES, MAX_TABLES, MAX_TABLE_ELEMENTS, MAX_MEMORIES = 64, 64, 100_000, 1
"""Bounds of one store. One memory, because the limit on memory is per memory."""


class PlanRefused(Exception):
    """This plan may not run here. The message goes into evidence and holds no value of the plan."""


class _Ran(NamedTuple):
    outcome: str
    text: str | None = None
    failure: ProviderFailure | None = None
    fuel: int | None = None
    violation: str | None = None


class Runner:
    """Runs calls, one at a time, for a worker of one profile. Threads that run calls have one each."""

    def __init__(
        self, engine: Engine, modules: Mapping[str, Module], profile: Profile, ticker: EpochTicker,
        outside: NetworkContext | None, files_dir: str, space: FileSpace | None = None,
    ) -> None:  # fmt: skip
        """`modules` by digest; `outside` only for the http profile; files are opened below `files_dir` alone, and
        written where `space` has room."""
        self._space = space or FileSpace()
        self._engine = engine
        self._modules = modules
        self._profile = profile
        self._ticker = ticker
        self.files_dir = files_dir
        self.outside = outside
        self._functions = HostFunctions(engine)

    def run(self, call: Call, word: Permit, secrets: Mapping[str, str], renew: Renew = no_other) -> Result:
        """Run a plan to its outcome. Raises nothing that the plan or its provider can cause."""
        begun = time.monotonic()
        plan = call.plan
        meter = Meter(plan.limits.max_io_calls, begun + min(call.deadline_seconds, plan.limits.timeout_seconds))
        verification = FAILED_BEFORE
        try:
            self._check(call, word)
        except PlanRefused as error:
            ran = _Ran("plan_refused", failure=ProviderFailure("denied", str(error)))
        else:
            ran, value = self._execute(plan, word, secrets, meter, renew)
            if ran.outcome == "success":
                verification = verify(plan, value, tuple(meter.observations), meter.remaining, self.files_dir)
        return Result(
            call_id=call.call_id,
            outcome=ran.outcome,
            output=ran.text,
            failure=ran.failure,
            verification=verification,
            observations=tuple(meter.observations),
            host_times=tuple(meter.host_times),
            fuel_consumed=ran.fuel,
            duration_us=int((time.monotonic() - begun) * 1e6),
            io_calls=meter.io_calls,
            violation=ran.violation,
            failure_name=_failure_name(ran.outcome, meter),
            may_have_run=meter.may_have_run,
        )

    def _check(self, call: Call, word: Permit) -> None:
        # SECURITY: what runs is decoded from the very bytes that the notary has the intent of.
        if hash_of(call.encoded) != word.plan_hash:
            raise PlanRefused("the notary's word is for another plan")
        plan = call.plan
        if plan.profile != self._profile.name:
            raise PlanRefused(f"the plan is for a worker of the profile {plan.profile}")
        if not self._profile.interfaces.issuperset(plan.required_imports):
            raise PlanRefused(f"the plan requires imports that the profile {plan.profile} does not have")
        if plan.limits.memory_mb > MAX_GUEST_MEMORY_MB:
            raise PlanRefused(f"the plan asks for more memory than a worker has ({MAX_GUEST_MEMORY_MB} MB)")

    def _execute(
        self, plan: Plan, word: Permit, secrets: Mapping[str, str], meter: Meter, renew: Renew
    ) -> tuple[_Ran, dict[str, Any]]:  # fmt: skip
        """Run the provider; return its outcome, and its answer as a value."""
        module = self._modules.get(plan.provider_module_digest)
        if module is None:
            problem = ProviderFailure("not-found", "this worker does not have the module")
            return _Ran("module_missing", failure=problem), {}
        calls = self._functions.current = self._host_calls(plan, word, secrets, meter, renew)
        try:
            ran = self._run_module(module, plan, meter)
        finally:
            self._functions.current = None
        return _checked(ran, plan, calls.http.answered if calls.http else ())

    def _host_calls(
        self, plan: Plan, word: Permit, secrets: Mapping[str, str], meter: Meter, renew: Renew
    ) -> HostCalls:  # fmt: skip
        http = files = None
        if self.outside is not None and "http" in plan.required_imports:
            sent = with_intent_id(plan, word.call_id)
            http = HttpHost(sent, secrets, meter, self.outside, is_approved=word.is_approved, renew=renew)
        if plan.files is not None and "fs" in plan.required_imports:
            approved = plan.unresolved_paths if word.is_approved else ()
            files = FileHost(plan.files, meter, self.files_dir, approved, space=self._space)
        return HostCalls(meter, GuestLog(plan.trace_id, plan.action_id), http, files)

    def _run_module(self, module: Module, plan: Plan, meter: Meter) -> _Ran:
        limits = plan.limits
        linker = self._functions.linker(frozenset(plan.required_imports))
        with Store(self._engine) as store:
            store.set_limits(limits.memory_mb * MIB, MAX_TABLE_ELEMENTS, MAX_INSTANCES, MAX_TABLES, MAX_MEMORIES)
            store.set_fuel(limits.fuel)
            set_deadline(store, meter.deadline)
            self._ticker.arm(meter.deadline)
            try:
                instance = linker.instantiate(store, module.component)
                entry = instance.get_func(store, module.entry)
                assert entry is not None, "the module's run was found when it was mapped"
                answer = call_entry(store, entry, plan.provider_input, plan.max_response_bytes)
            except WasmtimeError as error:
                return self._trapped(store, plan, meter, describe(error))
            except TooLong:
                problem = ProviderFailure("too-large", f"the output has more than {plan.max_response_bytes} bytes")
                return _Ran("bad_output", failure=problem, fuel=limits.fuel - remaining_fuel(store))
            finally:
                self._ticker.disarm(meter.deadline)
            fuel = limits.fuel - remaining_fuel(store)
        if isinstance(answer, str):
            return _Ran("success", text=answer, fuel=fuel)
        outcome = "memory" if is_refused_memory(answer) else "provider_error"
        return _failed(_Ran(outcome, failure=answer, fuel=fuel), meter)

    def _trapped(self, store: Store, plan: Plan, meter: Meter, said: str) -> _Ran:
        left = remaining_fuel(store)
        is_late = time.monotonic() >= meter.deadline
        used = None if is_late else plan.limits.fuel - left
        if used == 0 and not meter.io_calls:
            # No instruction was executed: the store's limits refused the instance before its first instruction.
            return _Ran("memory", failure=ProviderFailure("too-large", "the module needs more than its limits"), fuel=0)
        # Beside other calls it can't be told which memory is whose. Built-in providers say what they were refused.
        memory = 0 if plan.isolation == "shared" else memory_of(store)
        outcome = classify(
            is_late=is_late, fuel_left=left, memory=memory, memory_limit=plan.limits.memory_mb * MIB
        )  # fmt: skip
        if outcome in ("trap", "memory") or meter.is_exceeded:
            return _failed(_Ran(outcome, failure=ProviderFailure("internal", said), fuel=used), meter)
        return _Ran(outcome, fuel=used)


def _failed(ran: _Ran, meter: Meter) -> _Ran:
    """A provider that fails after the host failed it, failed because of that."""
    if meter.is_exceeded:
        return ran._replace(outcome="io_calls", failure=None)
    if meter.failure is not None:
        return ran._replace(outcome=meter.fails_as, failure=meter.failure)
    return ran


def _failure_name(outcome: str, meter: Meter) -> FailureName | None:
    """The failure as the host knows it. None: the outcome tells all."""
    if outcome == meter.fails_as or (outcome, meter.failure_name) == ("timeout", "upstream_timeout"):
        return meter.failure_name
    seen = meter.observations[-1:] if outcome == "provider_error" else []
    return "upstream_status" if any((one.status or 0) >= ERROR_STATUS for one in seen) else None


def _checked(ran: _Ran, plan: Plan, headers: Headers) -> tuple[_Ran, dict[str, Any]]:
    """The answer as a value, once it is what an answer must be. `headers` are those of the upstream's last answer."""
    if ran.outcome != "success" or ran.text is None:
        return ran, {}
    planned = plan.http_request
    try:
        value = parse_output(ran.text, plan.max_response_bytes)
        if planned is not None and isinstance(planned.response, ResponseRules):
            ran = ran._replace(text=shaped(value, planned.response, headers))
            value = parse_output(ran.text or "", plan.max_response_bytes)
    except BadOutput as error:
        return _Ran("bad_output", failure=ProviderFailure("invalid-input", str(error)), fuel=ran.fuel), {}
    try:
        if plan.response_schema is not None:
            check_schema(plan.response_schema, value)
    except SchemaViolated as error:
        if not plan.enforce_response_schema:
            return ran._replace(violation=str(error)), value
        return ran._replace(outcome="response_schema", failure=ProviderFailure("invalid-input", str(error))), {}
    return ran, value


def refused_result(call_id: str, reason: str) -> Result:
    """The result of a call that this worker does not run."""
    return Result(
        call_id=call_id, outcome="plan_refused", output=None, failure=ProviderFailure("denied", reason),
        verification=FAILED_BEFORE, observations=(), fuel_consumed=None, duration_us=0, io_calls=0,
        may_have_run="no",
    )  # fmt: skip


def broken_result(call_id: str, observations: tuple[Observation, ...] = ()) -> Result:
    """The result if the complete one is too large for a frame."""
    return Result(
        call_id=call_id, outcome="bad_output", output=None,
        failure=ProviderFailure("too-large", "the result is larger than a frame"),
        verification=Verification(FAILED_BEFORE.outcome), observations=observations[:10], fuel_consumed=None,
        duration_us=0, io_calls=len(observations),
    )  # fmt: skip
