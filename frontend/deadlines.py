"""The deadlines and pauses of the rooms of a front and of the deliverer: one table, a row for each room that has one.

Holds values only, in seconds unless a row says otherwise. A room gets its own row from frontend/compose.py, and a test
gives it another one. None of them is a setting. Waits that depend on the call or the endpoint are not here: they stand
in its plan or its configuration.
"""

from typing import Final

import msgspec

from ipc.limits import COMPILE_SECONDS

QUESTION_SECONDS: Final = 1.0
"""One question to the policy engine (docs/contract.md, "Limits")."""


class BrokerDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/broker/."""

    token_seconds: float = 10.0
    """For a token, or as long as its call may take."""
    keys_seconds: float = 10.0
    """For the keys of an issuer."""
    grace_seconds: float = 2.0
    """Added to that: a broker that has not answered then is given up."""


class CallDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/calls/, and the bound on tries of one call."""

    clean_up_seconds: float = 12.0
    """A cancelled call leaves its evidence within this time: longer than one operation of the notary may take."""
    settle_seconds: float = 3.0
    """A call that was let through the egress proxy is answered once the proxy's list is narrow again, or after this."""
    upkeep_seconds: float = 1.0
    """Between two rounds of upkeep, which ends expired holds and unsettled claims."""
    refusal_seconds: float = 60.0
    """Between two events of unproven callers, for each user and code."""
    lines_seconds: float = 10.0
    """The window that bounds log lines of refusals, for each user and code (frontend/telemetry/lines.py)."""
    max_workers: int = 4
    """A count: workers that one call tries. It leaves one that ended, or is busy for long, before it began the call."""


class ConfigurationDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/configuration/."""

    read_seconds: float = 30.0
    """To read manifests and keys, and again to build the registry."""
    prepare_seconds: float = 100.0
    """A reload prepares within this time: less than the supervisor waits, so that it always hears the result."""
    finish_seconds: float = 125.0
    """All other fronts are ready within this time: a little more than the supervisor gives to one reload."""
    settle_seconds: float = 3.0
    """A reload that is in force waits this long for the egress proxy's list, which is too wide until then, never too
    narrow."""
    follow_seconds: float = 5.0
    """A call waits this long for a change of policy that another front has made."""
    look_again_seconds: float = 0.05
    """Between two checks for another front's change."""
    others_seconds: float = 1.0
    """A change that another front has written to disk is in force here within this time."""
    end_holds_seconds: float = 2.0
    """The answer to revoke-all waits this long until the revoked holds have ended."""
    turn_seconds: float = 15.0
    """A change waits this long for a load, or another change, to end."""


class ControlDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/control.py for the supervisor."""

    load_seconds: float = COMPILE_SECONDS + 30.0
    """At a start the template may have to compile large modules, on a busy machine; a reload may take less time."""
    reload_seconds: float = 130.0
    """A little more than the supervisor gives to one reload. A reload that waits for others may take longer."""


class EgressDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/egress/."""

    ask_seconds: float = 2.0
    """The proxy answers within this time, all tries and pauses included."""
    pauses: tuple[float, ...] = (0.05, 0.25)
    """Before each further try while the port is closed: squid closes it for some milliseconds while it reads its
    configuration, which it does whenever live sync has written the list."""
    look_seconds: float = 1.0
    """Between two checks of the list that live sync writes."""


class FileDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/files/exclusive.py."""

    turn_seconds: float = 10.0
    """A writer gets its turn within this time: once among this front's own tasks, once among fronts."""
    write_seconds: float = 10.0
    """A change is on disk within this time."""
    look_again_seconds: float = 0.01
    """Between two checks for the turn."""


class HealthDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/health/."""

    round_seconds: float = 1.0
    """Between two questions to a dependency, unless an answer is needed sooner."""
    overdue_seconds: float = 2.0
    """A dependency that has not answered for this long is down."""
    proxy_pause_seconds: float = 3.0
    """Between two questions to a proxy that answers: each may be a line in its log."""


class NotaryDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/notary/, in the deliverer and the exporter as well."""

    answer_seconds: float = 10.0
    """For the answer to one operation, unless its caller says otherwise."""
    greeting_seconds: float = 60.0
    """For the notary to open its database and keys."""
    reader_seconds: float = 30.0
    """For the supervisor to start a reader."""


class OpaDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/policy/opa/."""

    look_seconds: float = 1.0
    """For one status request."""
    round_seconds: float = 1.0
    """Between two status requests to a healthy OPA."""
    busy_round_seconds: float = 0.25
    """The same while remembered decisions are in use."""
    first_pause_seconds: float = 0.1
    """After a status request that failed; it doubles with each failure."""
    longest_pause_seconds: float = 2.0
    """The upper bound of that pause."""
    least_pause_seconds: float = 0.05
    """Between any two status requests, even if one is wanted sooner."""
    push_seconds: float = 3.0
    """To push the documents."""
    probe_rounds: int = 2
    """A count: after so many status requests a healthy OPA is asked to decide a probe."""


class PolicyDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/policy/."""

    question_seconds: float = QUESTION_SECONDS
    """For one question."""
    stall_seconds: float = 0.9 * QUESTION_SECONDS
    """A process that has answered nothing for this long when a question runs out of time is given up. A hanging
    evaluation that began later ends by itself: the process has an alarm of its own."""
    late_seconds: float = 0.05
    """A front that notices a deadline later than this stood still itself, and reads what came for as long again."""
    load_seconds: float = 10.0
    """To compile a policy, including the start of its process."""
    first_load_seconds: float = 30.0
    """The same while no policy is in force: no question waits, and the whole gateway is starting."""
    successor_seconds: float = 5.0
    """A candidate whose process was lost waits this long for another process."""
    beat_seconds: float = 0.25
    """Between two heartbeats while remembered decisions are in use."""
    idle_beat_seconds: float = 1.0
    """Between two heartbeats otherwise."""
    quiet_seconds: float = 2.0
    """A process that has owed an answer for this long is shown as not available."""
    silent_seconds: float = 5.0
    """A process that has owed an answer for this long is given up: longer, because the machine may be busy."""
    send_seconds: float = 1.0
    """A process that does not read for this long is lost."""
    read_seconds: float = 30.0
    """To read the whole policy folder."""
    look_seconds: float = 5.0
    """To read the status of one of its files."""
    opa: OpaDeadlines = OpaDeadlines()


class PoolDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/pool/."""

    greeting_seconds: float = 10.0
    """From attachment to WorkerReady."""
    grace_seconds: float = 2.0
    """Added to the call's own deadline, which the worker's clock enforces."""
    give_seconds: float = 15.0
    """A worker reads a large plan within this time: longer than a notary may be silent."""
    ask_seconds: float = 5.0
    """A requested worker that has not started by then is requested again."""
    leave_seconds: float = 5.0
    """A retired worker that still runs by then is killed."""
    tend_seconds: float = 1.0
    """Between two checks of idle workers; less if they retire sooner."""
    min_tend_seconds: float = 0.05
    """The lower bound of that pause."""


class WebhookDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/webhooks/."""

    look_again_seconds: float = 3.0
    """Between two polls for due deliveries: claims of a deliverer that crashed send no wake-up."""
    try_again_seconds: float = 1.0
    """After the ledger or the clock has failed."""
    claim_margin_seconds: float = 5.0
    """A claim outlives its attempt by this much, so that the attempt can be settled."""
    test_margin_seconds: float = 5.0
    """A front waits this much longer for an operator's test than the attempt may take."""


class WitnessDeadlines(msgspec.Struct, frozen=True):
    """Waits of frontend/witnesses/."""

    most_intervals: float = 30.0
    """The upper bound of the pause after failures, which doubles with each, in intervals of the configuration."""
    say_again_seconds: float = 60.0
    """Between two log lines about one failing witness."""


class Deadlines(msgspec.Struct, frozen=True):
    """The deadlines and pauses of one front, by room."""

    broker: BrokerDeadlines = BrokerDeadlines()
    calls: CallDeadlines = CallDeadlines()
    configuration: ConfigurationDeadlines = ConfigurationDeadlines()
    control: ControlDeadlines = ControlDeadlines()
    """frontend/compose.py does not use it: the control channel is open by then."""
    egress: EgressDeadlines = EgressDeadlines()
    files: FileDeadlines = FileDeadlines()
    health: HealthDeadlines = HealthDeadlines()
    notary: NotaryDeadlines = NotaryDeadlines()
    """frontend/compose.py uses it for readers alone: it is given the client."""
    policy: PolicyDeadlines = PolicyDeadlines()
    pool: PoolDeadlines = PoolDeadlines()
    webhooks: WebhookDeadlines = WebhookDeadlines()
    witnesses: WitnessDeadlines = WitnessDeadlines()
