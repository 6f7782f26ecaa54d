"""The operator's clients: `OperatorClient` for threads, `AsyncOperatorClient` for asyncio and trio. May be shared.

Both run the flows of gateway_client/operating/core.py and gateway_client/operating/authority.py, where every method is
described. Guarantees: every request has a proof of its own; a mutation that may have happened is never sent again.
"""

from collections.abc import AsyncIterator, Iterator

from gateway_client.calling.core import DEFAULT_LIMITS, Limits
from gateway_client.keys import OperatorCredential
from gateway_client.operating.core import EVERY_EVENT, OperatorCore
from gateway_client.operating.paging import MAX_PAGE, Paging
from gateway_client.results import AuditEvent, EventFilter
from gateway_client.running.blocking import BlockingClient, BlockingRunner, blocking
from gateway_client.running.nonblocking import NonblockingClient, NonblockingRunner, nonblocking
from gateway_client.wire.address import Address
from gateway_client.wire.flows import SYSTEM_CLOCK, Clock


class OperatorClient(BlockingClient):
    """Decides approvals, reads evidence, runs the gateway. `address` is that of the admin socket, or merged TCP."""

    def __init__(
        self,
        address: Address | str,
        credential: OperatorCredential,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Opens nothing yet. Raises ValueError for an invalid address."""
        self._address = Address.parse(address) if isinstance(address, str) else address
        self._core = OperatorCore(self._address, credential, limits, clock)
        self._thumbprint = credential.key.thumbprint
        self._runner = BlockingRunner(self._address, limits)

    def __repr__(self) -> str:
        return f"OperatorClient({self._address!r})"

    def iter_events(self, where: EventFilter = EVERY_EVENT, page_size: int = MAX_PAGE) -> Iterator[AuditEvent]:
        """Every event that fits, newest first, fetched page by page; `page_size` up to 1000."""
        paging = Paging(self._core, where, page_size)
        while page := self._runner.run(paging.next_page()):
            yield from page

    @property
    def thumbprint(self) -> str:
        """Thumbprint of the key that signs proofs and decisions (RFC 7638)."""
        return self._thumbprint

    approvals = blocking(OperatorCore.approvals)
    approval = blocking(OperatorCore.approval)
    approve = blocking(OperatorCore.approve)
    deny = blocking(OperatorCore.deny)
    events = blocking(OperatorCore.events)
    audit_summary = blocking(OperatorCore.audit_summary)
    verify_audit = blocking(OperatorCore.verify_audit)
    checkpoint = blocking(OperatorCore.checkpoint)
    proof = blocking(OperatorCore.proof)
    consistency = blocking(OperatorCore.consistency)
    receipt = blocking(OperatorCore.receipt)
    receipt_keys = blocking(OperatorCore.receipt_keys)
    metrics = blocking(OperatorCore.metrics)
    status = blocking(OperatorCore.status)
    intents = blocking(OperatorCore.intents)
    intent = blocking(OperatorCore.intent)
    verify_intent = blocking(OperatorCore.verify_intent)
    resolve_intent = blocking(OperatorCore.resolve_intent)
    sessions = blocking(OperatorCore.sessions)
    revoke_session = blocking(OperatorCore.revoke_session)
    erase_evidence = blocking(OperatorCore.erase_evidence)
    webhooks = blocking(OperatorCore.webhooks)
    test_webhook = blocking(OperatorCore.test_webhook)
    redeliver_webhook = blocking(OperatorCore.redeliver_webhook)
    drain = blocking(OperatorCore.drain)
    revoke_all = blocking(OperatorCore.revoke_all)
    epoch = blocking(OperatorCore.epoch)
    reload = blocking(OperatorCore.reload)
    domains = blocking(OperatorCore.domains)
    add_domain = blocking(OperatorCore.add_domain)
    remove_domain = blocking(OperatorCore.remove_domain)
    clear_domains = blocking(OperatorCore.clear_domains)
    paths = blocking(OperatorCore.paths)
    add_path = blocking(OperatorCore.add_path)
    remove_path = blocking(OperatorCore.remove_path)
    clear_paths = blocking(OperatorCore.clear_paths)
    policy = blocking(OperatorCore.policy)
    principal = blocking(OperatorCore.principal)
    explain = blocking(OperatorCore.explain)
    preview = blocking(OperatorCore.preview)
    grant = blocking(OperatorCore.grant)
    revoke = blocking(OperatorCore.revoke)
    allow = blocking(OperatorCore.allow)
    disallow = blocking(OperatorCore.disallow)
    thresholds = blocking(OperatorCore.thresholds)
    set_threshold = blocking(OperatorCore.set_threshold)
    clear_thresholds = blocking(OperatorCore.clear_thresholds)
    caps = blocking(OperatorCore.caps)
    set_cap = blocking(OperatorCore.set_cap)
    clear_caps = blocking(OperatorCore.clear_caps)
    standing_approvals = blocking(OperatorCore.standing_approvals)
    add_standing = blocking(OperatorCore.add_standing)
    revoke_standing = blocking(OperatorCore.revoke_standing)
    actions = blocking(OperatorCore.actions)
    manifest = blocking(OperatorCore.manifest)
    request_schema = blocking(OperatorCore.request_schema)
    health = blocking(OperatorCore.health)
    ready = blocking(OperatorCore.ready)


class _AsyncEvents(AsyncIterator[AuditEvent]):
    """Not a generator: one that is left half-way would want to be closed."""

    def __init__(self, runner: NonblockingRunner, paging: Paging) -> None:
        self._runner = runner
        self._paging = paging
        self._page: Iterator[AuditEvent] = iter(())

    async def __anext__(self) -> AuditEvent:
        for event in self._page:
            return event
        page = await self._runner.run(self._paging.next_page())
        if not page:
            raise StopAsyncIteration
        self._page = iter(page)
        return next(self._page)


class AsyncOperatorClient(NonblockingClient):
    """OperatorClient for tasks of one event loop, asyncio or trio."""

    def __init__(
        self,
        address: Address | str,
        credential: OperatorCredential,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Opens nothing yet. Raises ValueError for an invalid address."""
        self._address = Address.parse(address) if isinstance(address, str) else address
        self._core = OperatorCore(self._address, credential, limits, clock)
        self._thumbprint = credential.key.thumbprint
        self._runner = NonblockingRunner(self._address, limits)

    def __repr__(self) -> str:
        return f"AsyncOperatorClient({self._address!r})"

    def iter_events(self, where: EventFilter = EVERY_EVENT, page_size: int = MAX_PAGE) -> AsyncIterator[AuditEvent]:
        """Every event that fits, newest first, fetched page by page; `page_size` up to 1000. May be left half-way."""
        return _AsyncEvents(self._runner, Paging(self._core, where, page_size))

    @property
    def thumbprint(self) -> str:
        """Thumbprint of the key that signs proofs and decisions (RFC 7638)."""
        return self._thumbprint

    approvals = nonblocking(OperatorCore.approvals)
    approval = nonblocking(OperatorCore.approval)
    approve = nonblocking(OperatorCore.approve)
    deny = nonblocking(OperatorCore.deny)
    events = nonblocking(OperatorCore.events)
    audit_summary = nonblocking(OperatorCore.audit_summary)
    verify_audit = nonblocking(OperatorCore.verify_audit)
    checkpoint = nonblocking(OperatorCore.checkpoint)
    proof = nonblocking(OperatorCore.proof)
    consistency = nonblocking(OperatorCore.consistency)
    receipt = nonblocking(OperatorCore.receipt)
    receipt_keys = nonblocking(OperatorCore.receipt_keys)
    metrics = nonblocking(OperatorCore.metrics)
    status = nonblocking(OperatorCore.status)
    intents = nonblocking(OperatorCore.intents)
    intent = nonblocking(OperatorCore.intent)
    verify_intent = nonblocking(OperatorCore.verify_intent)
    resolve_intent = nonblocking(OperatorCore.resolve_intent)
    sessions = nonblocking(OperatorCore.sessions)
    revoke_session = nonblocking(OperatorCore.revoke_session)
    erase_evidence = nonblocking(OperatorCore.erase_evidence)
    webhooks = nonblocking(OperatorCore.webhooks)
    test_webhook = nonblocking(OperatorCore.test_webhook)
    redeliver_webhook = nonblocking(OperatorCore.redeliver_webhook)
    drain = nonblocking(OperatorCore.drain)
    revoke_all = nonblocking(OperatorCore.revoke_all)
    epoch = nonblocking(OperatorCore.epoch)
    reload = nonblocking(OperatorCore.reload)
    domains = nonblocking(OperatorCore.domains)
    add_domain = nonblocking(OperatorCore.add_domain)
    remove_domain = nonblocking(OperatorCore.remove_domain)
    clear_domains = nonblocking(OperatorCore.clear_domains)
    paths = nonblocking(OperatorCore.paths)
    add_path = nonblocking(OperatorCore.add_path)
    remove_path = nonblocking(OperatorCore.remove_path)
    clear_paths = nonblocking(OperatorCore.clear_paths)
    policy = nonblocking(OperatorCore.policy)
    principal = nonblocking(OperatorCore.principal)
    explain = nonblocking(OperatorCore.explain)
    preview = nonblocking(OperatorCore.preview)
    grant = nonblocking(OperatorCore.grant)
    revoke = nonblocking(OperatorCore.revoke)
    allow = nonblocking(OperatorCore.allow)
    disallow = nonblocking(OperatorCore.disallow)
    thresholds = nonblocking(OperatorCore.thresholds)
    set_threshold = nonblocking(OperatorCore.set_threshold)
    clear_thresholds = nonblocking(OperatorCore.clear_thresholds)
    caps = nonblocking(OperatorCore.caps)
    set_cap = nonblocking(OperatorCore.set_cap)
    clear_caps = nonblocking(OperatorCore.clear_caps)
    standing_approvals = nonblocking(OperatorCore.standing_approvals)
    add_standing = nonblocking(OperatorCore.add_standing)
    revoke_standing = nonblocking(OperatorCore.revoke_standing)
    actions = nonblocking(OperatorCore.actions)
    manifest = nonblocking(OperatorCore.manifest)
    request_schema = nonblocking(OperatorCore.request_schema)
    health = nonblocking(OperatorCore.health)
    ready = nonblocking(OperatorCore.ready)
