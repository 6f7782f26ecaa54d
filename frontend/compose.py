"""The composition root: the only place that builds services from settings.

Opening is all or nothing: a missing part at the start ends the process with its exit code.
"""

from collections.abc import Callable
from pathlib import Path

from frontend.actions.modules import modules_folder
from frontend.auth.authentication import Authentication
from frontend.auth.certificates import CertificateJudge
from frontend.auth.dpop import DpopVerifier
from frontend.auth.lease import LeaseVerifier
from frontend.auth.operators import Operators
from frontend.auth.remote import RemoteCallers
from frontend.auth.tokens import TokenJudge
from frontend.broker.client import BrokerClient
from frontend.calls.approvals.expiry import Expiry
from frontend.calls.approvals.hold import HoldWriter
from frontend.calls.approvals.learning import Learning
from frontend.calls.approvals.looks import Looks
from frontend.calls.approvals.modules import HeldModules
from frontend.calls.approvals.quorums import QuorumWriter
from frontend.calls.approvals.recovery import Recovery
from frontend.calls.approvals.settle import Settlement
from frontend.calls.approvals.signatures import Signatures
from frontend.calls.approvals.transitions import Transitions
from frontend.calls.approvals.upkeep import HoldUpkeep
from frontend.calls.audit_writer import AuditWriter
from frontend.calls.budgets import BudgetCheck
from frontend.calls.deciding import Deciding
from frontend.calls.ended_calls import EndedCalls
from frontend.calls.execution import Execution
from frontend.calls.explaining import Explaining
from frontend.calls.intents import Intents
from frontend.calls.pipeline import Pipeline
from frontend.calls.plan_secrets import PlanSecrets
from frontend.calls.previewing import Previewing
from frontend.calls.quotas import Quotas
from frontend.calls.refusals import Refusals
from frontend.calls.refused_operators import RefusedOperators
from frontend.clock import TimeSource
from frontend.configuration.access import Authority
from frontend.configuration.active import Configuration
from frontend.configuration.current import Current
from frontend.configuration.manifest_record import ManifestRecord
from frontend.configuration.reloads import ReloadRequests
from frontend.configuration.revocation import Revocation
from frontend.control import SupervisorLink
from frontend.deadlines import Deadlines
from frontend.egress.learned import LearnedRules
from frontend.egress.proxy import asker
from frontend.egress.proxy_list import ProxyAllowList, list_file
from frontend.egress.rulefile import RuleFile, rules_path
from frontend.exporter.client import ExporterClient
from frontend.health.dependencies import DependencyPulses
from frontend.limits.admission import Admission
from frontend.limits.body_bytes import BodyBytes
from frontend.limits.free_space import FreeSpace
from frontend.limits.rates import Rates, SessionRates
from frontend.limits.sessions import SessionTable
from frontend.notary.client import NotaryClient
from frontend.notary.in_force import NotaryFacts
from frontend.notary.readers import Readers
from frontend.policy.embedded import EmbeddedPolicy
from frontend.policy.engine import RunningEngine
from frontend.policy.file import PolicyFile
from frontend.policy.measured import MeasuredPolicy
from frontend.pool.pool import CORES, Pools
from frontend.secrets.files import SecretFile
from frontend.services import Services
from frontend.shared.memory import SharedMemory
from frontend.telemetry.metrics import Metrics
from frontend.telemetry.present import Presence
from frontend.telemetry.processes import Processes
from frontend.telemetry.weakened import Weakened
from frontend.webhooks.webhooks import ConfiguredWebhooks
from frontend.witnesses.witnesses import Witnesses
from ipc.channel.front_memory import Layout
from ipc.messages.control import StartFront
from ipc.network.loopback import loopback_aliases, own_addresses
from ipc.settings import Settings


def build_services(
    start: StartFront, control: SupervisorLink, notary: NotaryClient, clock: TimeSource,
    memory: SharedMemory | None = None, deadlines: Deadlines = Deadlines(),
) -> Services:  # fmt: skip
    """Every service; `memory` is shared by fronts. Raises KeyFileError, OSError or ValueError with a clear sentence."""
    settings, front_id = start.settings, start.front_id
    memory = memory or SharedMemory.alone(Layout(1, Layout.of(settings).width))
    weakened = Weakened(settings.dev_mode, sandbox_degraded=bool(settings.walls.missing))
    current, known = Current(settings), NotaryFacts()
    metrics = Metrics(current.registry_now, memory)
    webhooks = ConfiguredWebhooks(current.settings_now, control, deadlines.webhooks)
    leases = LeaseVerifier(clock, notary.hear_now)
    known.followers.append(leases.use)
    notary.on_in_force, notary.observe, notary.observe_store = known.hear, metrics.asked, metrics.asked_store
    admission, rates, sessions = _limits(settings, metrics, memory)
    journal, transitions = AuditWriter(weakened, notary), Transitions(clock, notary, front_id, metrics)
    refusals, operators = Refusals(journal, deadlines.calls), Operators(settings.operators)
    proofs = DpopVerifier(settings.public_base_url, loopback_aliases(settings))
    authentication = Authentication(clock, notary, known, leases, proofs, operators, sessions)
    measured = MeasuredPolicy(policy := _policy(start, control, metrics, memory, deadlines), metrics)
    pools, presence = _pools(settings, control, metrics, deadlines), Presence(memory)
    rule_file = RuleFile(rules_path(settings), deadlines.files)
    allow_list = _allow_list(start, current, rule_file, presence, deadlines)
    policy_file = PolicyFile(settings.policy_dir, deadlines.policy, deadlines.files, has_rules=settings.opa_url is None)
    configuration = Configuration(
        current, control, measured, pools, notary, allow_list, memory, policy_file, deadlines.configuration, operators
    )
    dependencies = _dependencies(settings, notary, admission.room, deadlines)
    execution = _execution(current, notary, known, pools, metrics, dependencies, deadlines, control)
    learned, ended = LearnedRules(rule_file, clock, journal, allow_list), _ended_calls(settings, control, metrics)
    settlement = Settlement(
        known, notary, measured, weakened, execution, transitions, Learning(learned, current.registry_now),
        Signatures(clock, own_addresses(settings), settings.approvals.require_signature, Looks()),
        HeldModules(current.registry_now, modules_folder(settings), control, pools), configuration.rights,
        QuorumWriter(clock, notary), allow_list, current.settings_now, ended, deadlines.calls,
    )  # fmt: skip
    expiry, recovery = Expiry(clock, notary, transitions, weakened), Recovery(notary, weakened, transitions)
    registry, use_newest, policy_files = current.registry_now, configuration.use_newest_policy, current.policy_files_now
    deciding = Deciding(
        current.settings_now, registry, measured, BudgetCheck(notary), learned.for_action, use_newest, policy_files
    )
    pipeline = Pipeline(
        clock, weakened, admission, authentication, deciding, HoldWriter(clock, notary, metrics), execution, notary,
        sessions, metrics, refusals, Quotas(current.identity_now, policy_files), ended,
    )  # fmt: skip
    return Services(
        settings=settings, front_id=front_id, control=control, clock=clock, known=known, notary=notary,
        readers=Readers(control.post, deadlines=deadlines.notary), authentication=authentication, policy=policy,
        pools=pools, admission=admission, configuration=configuration, allow_list=allow_list, webhooks=webhooks,
        reloads=_reloads(configuration, journal, deadlines), rates=rates, metrics=metrics, memory=memory,
        authority=Authority(configuration, control, journal, deadlines.configuration), settlement=settlement,
        upkeep=HoldUpkeep(expiry, recovery, configuration.rights, deadlines.calls), refusals=refusals, journal=journal,
        revocation=Revocation(known, journal, notary, expiry, configuration.rights), presence=presence,
        refused_operators=RefusedOperators(authentication, refusals, metrics), broker=execution.secrets.broker,
        intents=Intents(notary, pools, journal, settings.limits.worker_wait_seconds), learned=learned,
        explaining=Explaining(deciding, policy, notary), exporter=ended.exporter,
        previewing=Previewing(pipeline, policy, journal, known, current.settings_now), dependencies=dependencies,
        witnesses=Witnesses(settings, notary, metrics, deadlines.witnesses, is_followed=start.number == 1),
        pipeline=pipeline, processes=Processes(start.number, settings.front_processes),
        remote=_remote(authentication, current, execution.secrets.broker),
    )  # fmt: skip


def _remote(authentication: Authentication, current: Current, broker: BrokerClient) -> RemoteCallers:
    clock, identity = authentication.clock, current.identity_now
    return RemoteCallers(TokenJudge(clock, identity, broker), CertificateJudge(clock, identity), authentication)


def _allow_list(
    start: StartFront, current: Current, rule_file: RuleFile, presence: Presence, deadlines: Deadlines
) -> ProxyAllowList:
    settings = start.settings
    return ProxyAllowList(
        list_file(settings.egress.proxy_allowlist_file, Path(settings.fronts_folder), deadlines.files),
        current.registry_now, rule_file.every, presence, deadlines.egress, is_successor=start.is_successor,
    )  # fmt: skip


def _ended_calls(settings: Settings, control: SupervisorLink, metrics: Metrics) -> EndedCalls:
    return EndedCalls(settings.telemetry.otlp, ExporterClient(control, metrics))


def _dependencies(settings: Settings, notary: NotaryClient, room: FreeSpace, deadlines: Deadlines) -> DependencyPulses:
    """The dependencies whose health this front asks for."""
    ask_proxy = asker(settings.egress_proxy_url, deadlines.egress, settings.egress.proxy_ca_file)
    return DependencyPulses(notary, ask_proxy, deadlines.health, room)


def _execution(
    current: Current, notary: NotaryClient, known: NotaryFacts, pools: Pools, metrics: Metrics,
    dependencies: DependencyPulses, deadlines: Deadlines, control: SupervisorLink,
) -> Execution:  # fmt: skip
    settings = current.settings_now()
    secrets = PlanSecrets(SecretFile(settings.secrets), BrokerClient(control, deadlines.broker))
    return Execution(
        notary, secrets, pools, settings.limits.worker_wait_seconds, metrics, _epoch_now(notary, known),
        dependencies.is_proxy_down, current.settings_now, deadlines.calls,
    )  # fmt: skip


def _policy(
    start: StartFront, control: SupervisorLink, metrics: Metrics, memory: SharedMemory, deadlines: Deadlines
) -> RunningEngine:
    """The engine that decides. Raises KeyFileError."""
    settings, remembered = start.settings, metrics.policy_remembered.add
    if settings.opa_url is None:
        return EmbeddedPolicy(control.replace_policy, remembered, deadlines.policy)
    from frontend.policy.opa.opening import open_opa

    return open_opa(
        settings, lambda origin: memory.policy_digest() == origin, remembered, deadlines.policy, deadlines.files,
        is_successor=start.is_successor,
    )  # fmt: skip


def _reloads(configuration: Configuration, journal: AuditWriter, deadlines: Deadlines) -> ReloadRequests:
    record = ManifestRecord(configuration.memory, configuration.control, journal)
    return ReloadRequests(configuration, configuration.control, journal, record, deadlines.configuration)


def _epoch_now(notary: NotaryClient, known: NotaryFacts) -> Callable[[bool], int]:
    """See `Execution.epoch_now`."""

    def epoch_now(hears: bool) -> int:
        if hears:
            notary.hear_now()
        return known.epoch

    return epoch_now


def _pools(settings: Settings, control: SupervisorLink, metrics: Metrics, deadlines: Deadlines) -> Pools:
    """The workers of this front, which has its part of the processors."""
    kill = metrics.counting_kills(control.kill_worker)
    abreast = max(CORES // settings.front_processes, 1)
    return Pools(
        settings.workers, control.need_worker, kill, control.tell_serves, deadlines.pool, abreast=abreast
    )  # fmt: skip


def _limits(settings: Settings, metrics: Metrics, memory: SharedMemory) -> tuple[Admission, Rates, SessionRates]:
    """The limits of the gateway, over all fronts together."""
    limits, limited = settings.limits, metrics.rate_limited.add
    room, bodies = FreeSpace(settings.ledger.min_free_bytes), BodyBytes(limits.most_in_flight, settings.front_processes)
    return (
        Admission(limits.most_in_flight, metrics.calls_refused.add, memory, room, bodies),
        Rates(limited, memory),
        SessionRates(limits.session_requests_per_second, limited, SessionTable(memory)),
    )
