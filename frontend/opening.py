"""The composition root: the only place that builds services from settings.

Opening fails whole: what cannot be had at start ends the process with the exit code that says so.
"""

from pathlib import Path

import trio

from frontend.actions.registry import Registry
from frontend.admission import Admission
from frontend.approvals.expiry import Expiry
from frontend.approvals.hold import Holds
from frontend.approvals.moves import Moves
from frontend.approvals.recovery import Recovery
from frontend.approvals.settle import Settlement
from frontend.approvals.upkeep import Upkeep
from frontend.auth.dpop import DpopVerifier
from frontend.auth.keyfiles import load_p256
from frontend.auth.lease import LeaseAuthority
from frontend.auth.operators import Operators
from frontend.authentication import Authentication
from frontend.budgets import Budgets
from frontend.clock import Clock, SystemClock
from frontend.configuration import Configuration
from frontend.control import Control
from frontend.epochs import Epochs
from frontend.evidence.grants import GrantSigner
from frontend.evidence.ledger import Ledger
from frontend.evidence.signing import ReceiptSigner
from frontend.evidence.sqlite import SqliteLedger
from frontend.execution import Execution
from frontend.house import House
from frontend.journal import Journal
from frontend.pipeline import Pipeline
from frontend.policy.embedded import EmbeddedPolicy
from frontend.pool.pool import Pools
from frontend.secrets.files import Secrets
from frontend.stores.interface import Store
from frontend.stores.sqlite import SqliteStore
from frontend.telemetry.marks import Marks
from ipc import messages as m


async def open_house(start: m.StartFront, control: Control) -> House:
    """Open stores and build every service. Raises StoreUnavailable, LedgerUnavailable, OSError or ValueError with a
    clear sentence."""
    state = Path(start.settings.state_dir)
    ledger = await SqliteLedger.open(start.settings.ledger.path or state / "ledger.sqlite3")
    store = await SqliteStore.open(state / "store.sqlite3")
    clock = SystemClock(await ledger.last_time() or 0.0)
    return build_house(start, control, store, ledger, clock)


def build_house(start: m.StartFront, control: Control, store: Store, ledger: Ledger, clock: Clock) -> House:
    """Every service over these stores. Raises OSError or ValueError with a clear sentence."""
    settings, front_id = start.settings, start.front_id
    marks = Marks(dev_mode=settings.dev_mode)
    leases = LeaseAuthority(load_p256(_key(settings.lease_signing_key_path)), clock, settings.lease_ttl_seconds)
    authentication = Authentication(
        clock, store, leases, DpopVerifier(settings.public_base_url), Operators(settings.operators)
    )
    grants = GrantSigner(load_p256(_key(settings.grant_signing_key_path)))
    signer = ReceiptSigner.open(_key(settings.receipt_signing_key_path), _key(settings.receipt_keys_jwks_path))
    policy = EmbeddedPolicy(control.replace_policy)
    pools = Pools(settings.workers, grants.jwks_json, control.need_worker, control.kill_worker)
    configuration = Configuration(settings, control, policy, pools, Registry(), trio.Lock())
    journal = Journal(clock, marks, ledger)
    budgets = Budgets(store, journal)
    execution = Execution(
        clock, ledger, Secrets(settings.secrets), grants, signer, pools, settings.limits.worker_wait_seconds
    )
    admission = Admission(settings.limits.max_in_flight)
    moves = Moves(clock, store, front_id)
    settlement = Settlement(store, journal, budgets, execution, moves)
    recovery = Recovery(store, ledger, journal, budgets, moves)
    upkeep = Upkeep(clock, store, Expiry(clock, store, journal, budgets), recovery)
    pipeline = Pipeline(
        settings, clock, marks, admission, authentication, lambda: configuration.registry, policy, budgets,
        Holds(clock, store, journal, front_id), execution, journal,
    )  # fmt: skip
    return House(
        settings=settings, front_id=front_id, control=control, clock=clock, store=store, ledger=ledger, leases=leases,
        authentication=authentication, policy=policy, pools=pools, signer=signer, configuration=configuration,
        settlement=settlement, upkeep=upkeep, pipeline=pipeline, admission=admission, epochs=Epochs(store),
        journal=journal,
    )  # fmt: skip


def _key(path: str | None) -> Path:
    if path is None:
        raise ValueError("a signing key path is missing in the settings")
    return Path(path)
