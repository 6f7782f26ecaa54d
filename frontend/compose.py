"""The composition root: the only place that builds services from settings.

Opening fails whole: what cannot be had at start ends the process with the exit code that says so.
"""

from pathlib import Path

import trio

from frontend.actions.registry import Registry
from frontend.auth.authentication import Authentication
from frontend.auth.dpop import DpopVerifier
from frontend.auth.epochs import Epochs
from frontend.auth.lease import LeaseAuthority
from frontend.auth.lease_keys import LeaseKeys
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
from frontend.clock import Clock, SystemClock
from frontend.configuration.access import Authority
from frontend.configuration.active import Configuration
from frontend.configuration.reloads import Reloads
from frontend.configuration.revocation import Revocation
from frontend.control import Control
from frontend.egress.learned import FILE_NAME, LearnedRules
from frontend.egress.proxy import asker
from frontend.egress.proxy_list import AllowList
from frontend.evidence.grants import GrantSigner
from frontend.evidence.ledger import Ledger
from frontend.evidence.measured import measured as measured_ledger
from frontend.evidence.signing import ReceiptSigner
from frontend.evidence.sqlite import SqliteLedger
from frontend.health.dependencies import Dependencies
from frontend.keyring import Keyring, open_keys, places_of
from frontend.limits.admission import Admission
from frontend.limits.rates import Rates, SessionRates
from frontend.policy.embedded import EmbeddedPolicy
from frontend.policy.measured import MeasuredPolicy
from frontend.pool.pool import Pools
from frontend.secrets.files import Secrets
from frontend.services import Services
from frontend.stores.interface import Store
from frontend.stores.measured import measured as measured_store
from frontend.stores.sqlite import SqliteStore
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.processes import Processes
from frontend.telemetry.weakened import Weakened
from frontend.webhooks.notifying import notifying
from frontend.webhooks.webhooks import Webhooks
from ipc import messages as m
from ipc.settings import Settings


async def open_services(start: m.StartFront, control: Control) -> Services:
    """Open stores and build every service. Raises StoreUnavailable, LedgerUnavailable, OSError or ValueError with a
    clear sentence."""
    state = Path(start.settings.state_dir)
    ledger = await SqliteLedger.open(start.settings.ledger.path or state / "ledger.sqlite3")
    store = await SqliteStore.open(state / "store.sqlite3")
    clock = SystemClock(await ledger.last_time() or 0.0)
    return build_services(start, control, store, ledger, clock)


def build_services(start: m.StartFront, control: Control, store: Store, ledger: Ledger, clock: Clock) -> Services:
    """Every service over these stores. Raises OSError or ValueError with a clear sentence."""
    settings, front_id = start.settings, start.front_id
    weakened = Weakened(dev_mode=settings.dev_mode)
    metrics = Metrics(lambda: configuration.registry)
    webhooks = Webhooks(settings, clock, metrics, is_successor=start.is_successor)
    store, ledger = measured_store(store, metrics), notifying(measured_ledger(ledger, metrics), webhooks)
    sessions = SessionRates(settings.limits.session_requests_per_second, metrics.rate_limited.add)
    journal = Journal(clock, weakened, ledger)
    leases, grants, signer, keyring = _signing(settings, clock, journal)
    epochs = Epochs(store)
    authentication = Authentication(
        clock, store, leases, DpopVerifier(settings.public_base_url), Operators(settings.operators), sessions, epochs
    )
    policy = EmbeddedPolicy(control.replace_policy, metrics.policy_remembered.add)
    measured = MeasuredPolicy(policy, metrics)
    kill = metrics.counting_kills(control.kill_worker)
    pools = Pools(settings.workers, lambda: grants.jwks_json, control.need_worker, kill)
    allow_list = AllowList(
        settings.egress.proxy_allowlist_file, Path(settings.state_dir), lambda: configuration.registry,
        lambda: learned.every(),  # noqa: PLW0108 (it is made further down)
        is_successor=start.is_successor,
    )  # fmt: skip
    configuration = Configuration(settings, control, measured, pools, Registry(), keyring, allow_list, trio.Lock())
    budgets = Budgets(store, journal)
    execution = Execution(
        clock, ledger, Secrets(settings.secrets), grants, signer, pools, settings.limits.worker_wait_seconds, epochs,
        metrics,
    )  # fmt: skip
    admission = Admission(settings.limits.max_in_flight, metrics.calls_refused.add)
    transitions = Transitions(clock, store, front_id)
    learned = LearnedRules(Path(settings.state_dir) / FILE_NAME, clock, journal, allow_list)
    settlement = Settlement(
        store, journal, budgets, execution, transitions, Learning(learned), allow_list, settings.egress_proxy_url
    )  # fmt: skip
    recovery = Recovery(store, ledger, journal, budgets, transitions)
    upkeep = Upkeep(clock, store, Expiry(clock, store, journal, budgets), recovery)
    pipeline = Pipeline(
        settings, clock, weakened, admission, authentication, lambda: configuration.registry, measured, budgets,
        Holds(clock, store, journal, front_id), execution, journal, learned.for_action, sessions, metrics,
    )  # fmt: skip
    return Services(
        settings=settings, front_id=front_id, control=control, clock=clock, store=store, ledger=ledger, leases=leases,
        authentication=authentication, policy=policy, pools=pools, signer=signer, configuration=configuration,
        reloads=Reloads(configuration, control, journal), authority=Authority(configuration, control, journal),
        keyring=keyring, settlement=settlement, upkeep=upkeep, pipeline=pipeline, admission=admission, epochs=epochs,
        revocation=Revocation(epochs, journal, ledger), journal=journal, learned=learned, allow_list=allow_list,
        rates=Rates(metrics.rate_limited.add), metrics=metrics, processes=Processes(start.number),
        dependencies=Dependencies(store, ledger, asker(settings.egress_proxy_url)), webhooks=webhooks,
    )  # fmt: skip


def _signing(
    settings: Settings, clock: Clock, journal: Journal
) -> tuple[LeaseAuthority, GrantSigner, ReceiptSigner, Keyring]:
    """Whoever signs, and the keyring that gives them other keys when keys are rotated."""
    places = places_of(settings)
    keys = open_keys(places)
    leases = LeaseAuthority(
        LeaseKeys(keys.lease.private, keys.lease.listed), clock, settings.lease_ttl_seconds, places.lease.set_file()
    )
    grants = GrantSigner(keys.grant.private)
    signer = ReceiptSigner(keys.receipt.private, keys.receipt.jwks(), places.receipt.set_file())
    return leases, grants, signer, Keyring(places, keys, leases, grants, signer, journal)
