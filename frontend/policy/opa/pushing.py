"""Our documents in an OPA's data: whether they are there, and how they get there.

Guarantees that they are replaced all at once or not at all, that nothing else of OPA's data is touched, and that no
front pushes what another one has replaced meanwhile: it holds a lock of the gateway from the look at what the fronts
agree on until OPA has answered. Never decides.
"""

from collections.abc import Callable
from pathlib import Path

from frontend.deadlines import FileDeadlines
from frontend.files.exclusive import Exclusive, NotChanged
from frontend.policy.engine import PolicySources
from frontend.policy.opa import wire
from frontend.policy.opa.lines import OpaConnection, OpaConnections
from frontend.policy.question import Question

LOCK_NAME = "opa-push.lock"


class NotHeld(Exception):
    """The OPA at the other end of this connection does not hold our documents."""


class NotTaken(Exception):
    """OPA did not take them. A sentence."""


class Pushed:
    """The documents of the policy in force. `is_current` says whether what `origin` of sources names is what all
    fronts agree on; `reads_revision` has OPA tell its bundles' revisions. `folder`: where fronts keep locks."""

    def __init__(
        self, lines: OpaConnections, folder: Path, is_current: Callable[[str], bool], files: FileDeadlines, *,
        reads_revision: bool,
    ) -> None:  # fmt: skip
        self._lines = lines
        self._is_current = is_current
        lock = folder / LOCK_NAME
        self._turns = Exclusive(lock, lock, files)
        self._documents = wire.Documents({}, "")
        self.sources: PolicySources | None = None
        self.revision: str | None = None
        """As OPA told it last."""
        self._mark_target = wire.target(f"{wire.DATA}/{wire.MARK}", has_provenance=reads_revision)

    @property
    def digest(self) -> str:
        """The digest of the documents that OPA must hold."""
        return self._documents.digest

    @property
    def probe(self) -> Question:
        """See probe_question."""
        return probe_question(self._documents)

    def adopt(self, sources: PolicySources, documents: wire.Documents) -> None:
        """Want these there from now on."""
        self.sources, self._documents = sources, documents

    async def look(self) -> wire.Mark:
        """Return the mark of the documents that OPA holds. Raises OpaUnreached, NotUnderstood."""
        return self._mark_of(await self._lines.ask("GET", self._mark_target))

    async def prove(self, line: OpaConnection) -> None:
        """Accept a connection whose other end holds the documents. Raises NotHeld, OpaUnreached, NotUnderstood."""
        digest = self.digest
        if line.proven == digest:
            return
        if self._mark_of(await self._lines.exchange(line, "GET", self._mark_target)).digest != digest:
            raise NotHeld
        line.proven = digest

    async def put(self) -> bool:
        """Have them there. False where the fronts agree on others by now, which are then not touched.

        Raises NotTaken, OpaUnreached, NotUnderstood.
        """
        try:
            async with self._turns.turn():
                sources, documents = self.sources, self._documents
                there = await self.look()
                if there.digest == documents.digest:
                    return True
                if sources is None or not self._is_current(sources.origin):
                    return False
                await self._patch(documents, there)
                return documents.digest == self.digest
        except NotChanged as error:
            raise NotTaken(str(error)) from None

    async def _patch(self, documents: wire.Documents, there: wire.Mark) -> None:
        answer = await self._lines.ask("PATCH", wire.DATA, wire.patch(documents, there))
        if answer.status == 404 and there.documents:
            # A document that this patch would remove is gone already, which does no harm.
            answer = await self._lines.ask("PATCH", wire.DATA, wire.patch(documents, wire.Mark()))
        if answer.status != 204:
            raise NotTaken(f"the access lists could not be pushed: {wire.refusal_of(answer)}")

    def _mark_of(self, answer: wire.OpaAnswer) -> wire.Mark:
        members = wire.found_in(answer)
        self.revision = members.revision
        return wire.mark_in(members)


def probe_question(documents: wire.Documents) -> Question:
    """The most ordinary question over these documents, for a look at whether anything is decided at all."""
    acl = documents.values.get("acl", {})
    granted = ((name, entry["actions"][0]) for name, entry in acl.items() if entry.get("actions"))
    principal, action = next(granted, ("probe:nobody", "probe_action"))
    return Question(
        principal=principal, owner=None, identity_method="peercred", identity_issuer=None, identity_subject=None,
        token_binding=None,
        action_id=action, action_version="1.0.0",
        action_risk_level="low", action_trust_verdict="digest_ok", scopes=("tools:call",),
        required_scopes=("tools:call",), requested_sinks=(), requested_secrets=(), egress_profile="none", targets=(),
        unresolved_domains=(), unresolved_paths=(), fs_path=None, calls_remaining=None,
        request_hash="sha256:" + "0" * 64,
    )  # fmt: skip
