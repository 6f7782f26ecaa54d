"""The composition root: the only place that builds services from settings.

Opening fails whole: what cannot be had at start ends the process with the exit code that says so.
"""

from pathlib import Path

import trio

from frontend.actions.registry import Registry
from frontend.auth.authentication import Authentication
from frontend.auth.dpop import DpopVerifier
from frontend.auth.lease import LeaseVerifier
from frontend.auth.operators import Operators
from frontend.calls.approvals.expiry import Expiry
from frontend.calls.approvals.hold import Holds
from frontend.calls.approvals.learning import Learning
from frontend.calls.approvals.recovery import Recovery
from frontend.calls.approvals.settle import Settlement
from frontend.calls.approvals.transitions import Transitions
from frontend.calls.approvals.upkeep import Upkeep
from frontend.calls.budgets import Budgets
from frontend.calls.execution import Execution
from frontend.calls.journal import Journal
from frontend.calls.pipeline import Pipeline
from frontend.clock import Clock
from frontend.configuration.access import Authority
from frontend.configuration.active import Configuration
from frontend.configuration.reloads import Reloads
from frontend.configuration.revocation import Revocation
from frontend.control import Control
from frontend.egress.learned import FILE_NAME, LearnedRules
from frontend.egress.proxy import asker
from frontend.egress.proxy_list import AllowList
from frontend.health.dependencies import Dependencies
from frontend.limits.admission import Admission
from frontend.limits.rates import Rates, SessionRates
from frontend.notary.client import NotaryClient
from frontend.notary.in_force import Known
from frontend.notary.operations import Notary
from frontend.notary.readers import Readers
from frontend.policy.embedded import EmbeddedPolicy
from frontend.policy.measured import MeasuredPolicy
from frontend.pool.pool import Pools
from frontend.secrets.files import Secrets
from frontend.services import Services
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.processes import Processes
from frontend.telemetry.weakened import Weakened
from frontend.webhooks.webhooks import Webhooks
from ipc import messages as m


def build_services(start: m.StartFront, control: Control, client: NotaryClient, clock: Clock) -> Services:
    """Every service. Raises KeyFileError, OSError or ValueError with a clear sentence."""
    settings, front_id = start.settings, start.front_id
    weakened = Weakened(dev_mode=settings.dev_mode)
    metrics = Metrics(lambda: configuration.registry)
    notary, known = Notary(client), Known()
    webhooks = Webhooks(settings, clock, notary, metrics, is_successor=start.is_successor)
    leases = LeaseVerifier(clock, client.hear_now)
    known.followers.append(leases.use)
    client.on_in_force, client.on_woken, client.observe = known.hear, webhooks.wake, metrics.asked
    sessions = SessionRates(settings.limits.session_requests_per_second, metrics.rate_limited.add)
    journal = Journal(weakened, notary)
    authentication = Authentication(
        clock, notary, known, leases, DpopVerifier(settings.public_base_url), Operators(settings.operators), sessions
    )
    policy = EmbeddedPolicy(control.replace_policy, metrics.policy_remembered.add)
    measured = MeasuredPolicy(policy, metrics)
    kill = metrics.counting_kills(control.kill_worker)
    pools = Pools(settings.workers, lambda: known.now.grant_jwks, control.need_worker, kill)
    allow_list = AllowList(
        settings.egress.proxy_allowlist_file, Path(settings.state_dir), lambda: configuration.registry,
        lambda: learned.every(),  # noqa: PLW0108 (it is made further down)
        is_successor=start.is_successor,
    )  # fmt: skip
    configuration = Configuration(settings, control, measured, pools, Registry(), notary, allow_list, trio.Lock())

    def epoch_now() -> int:
        client.hear_now()
        return known.epoch

    execution = Execution(
        notary, Secrets(settings.secrets), pools, settings.limits.worker_wait_seconds, metrics, epoch_now
    )  # fmt: skip
    admission = Admission(settings.limits.max_in_flight, metrics.calls_refused.add)
    transitions = Transitions(clock, notary, front_id, metrics)
    learned = LearnedRules(Path(settings.state_dir) / FILE_NAME, clock, journal, allow_list)
    settlement = Settlement(
        known, notary, weakened, execution, transitions, Learning(learned), allow_list, settings.egress_proxy_url
    )  # fmt: skip
    upkeep = Upkeep(Expiry(notary, transitions, weakened), Recovery(notary, weakened, transitions))
    pipeline = Pipeline(
        settings, clock, weakened, admission, authentication, lambda: configuration.registry, measured,
        Budgets(notary), Holds(clock, notary, metrics), execution, notary, learned.for_action, sessions, metrics,
    )  # fmt: skip
    return Services(
        settings=settings, front_id=front_id, control=control, clock=clock, known=known, notary=notary, client=client,
        readers=Readers(control.post),
        authentication=authentication, policy=policy, pools=pools, configuration=configuration,
        reloads=Reloads(configuration, control, journal), authority=Authority(configuration, control, journal),
        settlement=settlement, upkeep=upkeep, pipeline=pipeline, admission=admission,
        revocation=Revocation(known, journal, notary), journal=journal, learned=learned, allow_list=allow_list,
        rates=Rates(metrics.rate_limited.add), metrics=metrics, processes=Processes(start.number),
        dependencies=Dependencies(notary, asker(settings.egress_proxy_url)), webhooks=webhooks,
    )  # fmt: skip
