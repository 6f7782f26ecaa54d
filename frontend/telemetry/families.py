"""The table of metrics: every family that /metrics shows, with its kind, its labels and its meaning.

Says what there is; frontend/telemetry/metrics.py counts, frontend/telemetry/readings.py writes it down.
`docs/metrics.md` says the same for people, and a test holds both against what a running gateway answers.
Label values are few and ours: never a principal, a session, a path or a text from outside.
"""

from typing import NamedTuple

OTHER = "other"
"""Label value for everything outside the known few."""


class Family(NamedTuple):
    """One family. `name` as a query names it (counters with `_total`); a histogram has the upper bounds of buckets."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    across: str = "sum"
    """How several fronts make one gateway: `sum`; `once`, since every front would say the same; `least`."""

    @property
    def unit(self) -> str:
        """`seconds` or `bytes` where the name says so, else empty."""
        base = self.name.removesuffix("_total")
        return next((unit for unit in ("seconds", "bytes") if base.endswith(f"_{unit}")), "")


SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds, in seconds, for what should take milliseconds: a question to a store, an evaluation of policy."""
LONG = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The same for work that waits for other processes: a provider, a worker, a whole call."""

# calls
CALLS = Family(
    "gate_action_calls_total", "counter",
    "Calls of actions by outcome, one for each decision; code is the error code, or ok.",
    ("action_id", "outcome", "code"),
)  # fmt: skip
CALL_SECONDS = Family(
    "gate_action_call_duration_seconds", "histogram",
    "Calls of actions from admission to answer, with any outcome.", (), LONG,
)  # fmt: skip
CALLS_REFUSED = Family(
    "gate_calls_refused_total", "counter",
    "Calls refused without being decided: draining, ceiling (all places, or all room for bodies, taken), share (the"
    " caller's part of either taken), rate (the session's requests per second), ledger_full (no room for evidence).",
    ("reason",),
)  # fmt: skip
IN_FLIGHT = Family(
    "gate_in_flight_calls", "gauge", "Calls and approved executions between admission and answer.", across="once"
)
EXECUTION_SECONDS = Family(
    "gate_provider_execution_duration_seconds", "histogram",
    "Executions of providers, from the worker's hearing of the plan to its result.", ("action_id",), LONG,
)  # fmt: skip
EXECUTIONS = Family(
    "gate_provider_executions_total", "counter",
    "Executions of providers by what the worker reported, approved calls included.", ("action_id", "outcome"),
)  # fmt: skip
SCHEMA_VIOLATIONS = Family(
    "gate_response_schema_violations_total", "counter",
    "Providers' results that broke their action's response schema, refused or let through.", ("action_id",),
)  # fmt: skip
BUDGET_EXHAUSTED = Family(
    "gate_budget_exhausted_total",
    "counter",
    "Calls denied because their session, or the hour of their principal, had no call left.",
)
QUOTA_EXHAUSTED = Family(
    "gate_quota_exhausted_total", "counter", "Calls and leases denied because their principal had used its quota.",
    ("quota",),
)  # fmt: skip
DPOP_REJECTIONS = Family(
    "gate_dpop_rejections_total", "counter", "Requests of agents and operators whose proof was missing or refused.",
    ("code",),
)  # fmt: skip
OPERATOR_AUTH_FAILURES = Family(
    "gate_operator_auth_failures_total", "counter", "Requests that need an operator and proved none, by error code.",
    ("code",),
)  # fmt: skip
RATE_LIMITED = Family(
    "gate_rate_limited_total", "counter", "Requests over a rate: leases, operators' writes and reads, sessions.",
    ("class",),
)  # fmt: skip
LEASES_ISSUED = Family("gate_leases_issued_total", "counter", "Leases handed out.")
LEASES_REFUSED = Family("gate_leases_refused_total", "counter", "Requests for a lease that got none.", ("code",))

# policy and approvals
DECISIONS = Family(
    "gate_policy_decisions_total", "counter",
    "Decisions of the policy engine (allow, deny or pending_approval), by the rule that it names.",
    ("decision", "rule"),
)  # fmt: skip
POLICY_SECONDS = Family(
    "gate_policy_request_duration_seconds", "histogram",
    "Requests to the policy engine: decide, and load for a policy to be put in force.", ("operation",), SHORT,
)  # fmt: skip
POLICY_ERRORS = Family(
    "gate_policy_request_errors_total", "counter",
    "Requests to the policy engine that brought no answer, and policies that it refused to load.",
    ("operation", "code"),
)  # fmt: skip
POLICY_REMEMBERED = Family(
    "gate_policy_remembered_total", "counter", "Decisions that were answered from memory, without the policy engine."
)  # fmt: skip
APPROVALS = Family(
    "gate_approvals_total", "counter", "Holds that began (held), and how holds ended.", ("outcome",)
)  # fmt: skip
PENDING = Family("gate_pending_approvals", "gauge", "Holds that wait for an operator.", across="once")
OLDEST_PENDING = Family(
    "gate_oldest_pending_approval_age_seconds", "gauge",
    "How long the oldest hold has waited for an operator; 0 when none waits.", across="once",
)  # fmt: skip
EPOCH = Family("gate_revocation_epoch", "gauge", "The revocation epoch in force.", across="once")

# stores
STORE_SECONDS = Family(
    "gate_store_request_duration_seconds", "histogram",
    "Requests to the key-value store, the wait for their turn included.", ("operation",), SHORT,
)  # fmt: skip
STORE_ERRORS = Family(
    "gate_store_request_errors_total", "counter", "Requests that the key-value store did not answer.", ("operation",)
)
LEDGER_SECONDS = Family(
    "gate_ledger_write_duration_seconds", "histogram",
    "Durable writes to the ledger: intent, receipt (with its event), event.", ("operation",), SHORT,
)  # fmt: skip
AUDIT_ERRORS = Family(
    "gate_audit_write_errors_total", "counter", "Writes that the ledger did not take.", ("operation",)
)
VERIFICATIONS = Family(
    "gate_audit_verifications_total", "counter", "Walks along the whole chain of events: intact or broken.",
    ("outcome",),
)  # fmt: skip
LEDGER_FREE = Family("gate_ledger_free_bytes", "gauge", "Free bytes on the volume of the ledger.", across="once")
UNRESOLVED = Family(
    "gate_unresolved_intents", "gauge", "Intents without a receipt: dispatched, effect unknown.", across="once"
)
OLDEST_UNRESOLVED = Family(
    "gate_oldest_unresolved_intent_age_seconds", "gauge",
    "How long ago the oldest intent without a receipt was dispatched that no worker is at work on; 0 without one.",
    across="once",
)  # fmt: skip

# workers
WORKER_WAIT = Family(
    "gate_worker_wait_duration_seconds", "histogram", "How long calls waited for a worker.", ("profile",), LONG
)
WORKERS = Family("gate_workers", "gauge", "Workers by state: idle, or busy with a call, a start or an end.",
                 ("profile", "state"))  # fmt: skip
WAITING = Family("gate_worker_waiting_calls", "gauge", "Calls that wait for a worker.", ("profile",))
WORKERS_KILLED = Family(
    "gate_workers_killed_total", "counter", "Workers that the front gave up and had killed, by its reason.",
    ("profile", "reason"),
)  # fmt: skip
WORKERS_ENDED = Family(
    "gate_workers_ended_total", "counter", "Workers' processes that ended, by exit code or signal.",
    ("profile", "reason"),
)  # fmt: skip

# the service
READINESS_DEGRADED = Family(
    "gate_readiness_degraded_total", "counter", "Answers of /readyz that were not ready, for each reason.", ("reason",)
)
DEPENDENCY_UP = Family(
    "gate_dependency_up", "gauge", "Whether each dependency answered just now.", ("dependency",), across="least"
)
ANSWERS = Family(
    "gate_http_answers_total", "counter", "Answers by row of the table of routes; other: not in the table.",
    ("route", "method", "status"),
)  # fmt: skip
CONNECTIONS = Family("gate_http_connections", "gauge", "Open connections by kind of listening socket.", ("listener",))
ACCEPTED = Family(
    "gate_http_connections_accepted_total", "counter", "Connections that were accepted and served.", ("listener",)
)
TURNED_AWAY = Family(
    "gate_http_connections_refused_total", "counter",
    "Connections beyond the ceiling, or beyond one user's share of it.", ("listener",),
)  # fmt: skip
CUT = Family(
    "gate_http_answers_cut_total", "counter",
    "Connections closed with an answer that the client did not take in time, or that took its user's room.",
    ("listener",),
)  # fmt: skip
FRONTS = Family("gate_fronts", "gauge", "Front processes that serve.", across="once")
LOOPING = Family(
    "gate_crash_loops", "gauge", "Whether a process ends again and again, for each that does.", ("process",),
    across="once",
)  # fmt: skip
LOG_LINES_DROPPED = Family(
    "gate_log_lines_dropped_total", "counter", "Log lines of fronts that standard error did not take at once."
)  # fmt: skip
ACTIONS = Family("gate_actions_registered", "gauge", "Actions in the active registry.", across="once")
DRAINING = Family("gate_draining", "gauge", "1 once the gateway takes no new calls.", across="once")
BUILD = Family("gate_build_info", "gauge", "The version of the gateway; always 1.", ("version",), across="once")
OUTBOX = Family(
    "gate_webhook_outbox_pending", "gauge", "Webhook deliveries that wait, those under way among them.", across="once"
)
WEBHOOK_DELIVERIES = Family(
    "gate_webhook_deliveries_total", "counter",
    "Attempts to deliver a webhook since the notary started: delivered or failed.", ("endpoint", "outcome"),
    across="once",
)  # fmt: skip
WEBHOOK_DROPS = Family(
    "gate_webhook_drops_total", "counter",
    "Webhook deliveries that will never arrive: rejected (by the receiver), exhausted (no retry is left), blocked (the"
    " name leads to private addresses), outbox_full (too many waited), not_configured (the endpoint is gone).",
    ("endpoint", "reason"), across="once",
)  # fmt: skip
WITNESS_REQUESTS = Family(
    "gate_witness_requests_total", "counter",
    "Requests to witnesses: cosigned, invalid (its answer does not hold), inconsistent (it remembers another log),"
    " refused, unreached.",
    ("witness", "outcome"),
)  # fmt: skip
OTLP_SPANS = Family(
    "gate_otlp_spans_total", "counter",
    "Spans of calls: exported, or dropped because the collector did not take them in time.",
    ("outcome",),
)  # fmt: skip
OTLP_EVENTS = Family(
    "gate_otlp_events_total", "counter",
    "Audit events: exported, dropped because the collector refused them, or skipped because the ledger did not hold"
    " them any more.",
    ("outcome",), across="once",
)  # fmt: skip
OTLP_EVENTS_WAITING = Family(
    "gate_otlp_events_waiting", "gauge", "Audit events in the ledger that the collector has not taken.", across="once"
)
OTLP_LEDGER_CHANGES = Family(
    "gate_otlp_ledger_changes_total", "counter",
    "How often the ledger did not continue the one whose events were exported.", across="once",
)  # fmt: skip
WITNESS_LAG = Family(
    "gate_witness_lag_seconds", "gauge",
    "For how long a witness that has not cosigned the last checkpoint has cosigned none; 0 when it has.", ("witness",),
    across="once",
)  # fmt: skip
CHECKPOINT_SIZE = Family(
    "gate_checkpoint_entries", "gauge", "Events and intents that the last signed checkpoint commits to.", across="once"
)

# processes
PROCESS = ("kind", "number")
CPU = Family("gate_process_cpu_seconds_total", "counter", "Processor time of each process, user and system.", PROCESS)
RESIDENT = Family("gate_process_resident_memory_bytes", "gauge", "Resident memory of each process.", PROCESS)
PROPORTIONAL = Family(
    "gate_process_proportional_memory_bytes", "gauge",
    "Resident memory of each process, shared pages divided among those who share them; where the kernel tells us.",
    PROCESS,
)  # fmt: skip
OPEN_FDS = Family("gate_process_open_fds", "gauge", "Open descriptors of each process; where the kernel tells us.",
                  PROCESS)  # fmt: skip
STARTED = Family(
    "gate_process_start_time_seconds", "gauge", "When each process started, in Unix seconds.", PROCESS
)  # fmt: skip

FAMILIES = tuple(value for value in list(vars().values()) if isinstance(value, Family))
"""All of them, in the order of this file."""
