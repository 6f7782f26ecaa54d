"""OPA as the policy engine: the front asks it over REST, and denies whenever it does not answer.

Owns the list of documents that OPA's data must hold, the state of OPA, and the remembered answers. Rules are OPA's own:
this module neither reads nor writes them. SECURITY: an allow counts only if OPA gave it over a connection whose other
end holds the gateway's documents, and under its present bundles; a remembered answer counts only for a second after
OPA's last answer.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from frontend.deadlines import PolicyDeadlines
from frontend.errors import GateError
from frontend.policy.engine import Commit, MemoStatus, PolicySources, PolicyUnreached
from frontend.policy.heartbeat import Heartbeat
from frontend.policy.memo import Memo, memo_status_of
from frontend.policy.opa import wire
from frontend.policy.opa.lines import OpaConnections, OpaUnreached
from frontend.policy.opa.pushing import NotHeld, NotTaken, Pushed
from frontend.policy.opa.standing import TIMEOUT, UNAVAILABLE, OpaState
from frontend.policy.question import ATTRIBUTES, BudgetUnread, Decision, Question, parse_decision
from frontend.telemetry.logs import log
from ipc.process.private_files import PrivateFileError

MEMO_OFF: Final = 'opa_memo is "off"'
NO_REVISION: Final = "OPA tells no revision of its bundles"
_NOT_DONE = (OpaUnreached, wire.NotUnderstood, NotTaken, PrivateFileError)
_encode = msgspec.json.Encoder().encode


class OpaPolicy:
    """A PolicyEngine over `lines`, with the documents of `pushed` in OPA's data.

    `remembers`: decisions are kept by the revision of OPA's bundles; `note_remembered` is called for each that is
    answered from memory. `is_successor`: this front follows one that had served, and begins even without an OPA.
    """

    def __init__(
        self, lines: OpaConnections, pushed: Pushed, note_remembered: Callable[[], None], deadlines: PolicyDeadlines, *,
        remembers: bool, is_successor: bool,
    ) -> None:  # fmt: skip
        self._lines = lines
        self._pushed = pushed
        self._note_remembered = note_remembered
        self.deadlines = deadlines
        self._remembers = remembers
        self._may_begin_alone = is_successor
        self._target = wire.target(wire.DECISION, has_provenance=remembers)
        self._memo: Memo | str = NO_REVISION if remembers else MEMO_OFF
        self._memo_revision: str | None = None
        self._standing = OpaState()
        self._heartbeat = Heartbeat()
        self._decides = True
        """True if OPA had a decision for the last test question."""
        self._rounds_to_probe = 0
        self._failures = 0
        self._heard_at = -1.0
        self._wanted = trio.Event()
        self._loading = trio.Lock()

    @property
    def policy_version(self) -> str:
        """The version of the data that OPA must hold; empty before the first."""
        return "" if self._pushed.sources is None else self._pushed.sources.policy_version

    @property
    def is_available(self) -> bool:
        """Whether OPA answered last, held our documents, and had a decision."""
        return self._standing.is_up and self._decides

    @property
    def memo_status(self) -> MemoStatus:
        """Whether decisions under the present bundles are remembered, and how many are; if not, why."""
        return memo_status_of(self._memo)

    def attach(self, sock: socket.socket, pid: int) -> None:
        """Refuse a policy process: it would be asked nothing."""
        sock.close()
        log.error("a policy process was attached although OPA decides", pid=pid)

    # ------------------------------------------------------------------ questions

    async def decide(self, question: Question) -> Decision:
        """Ask, and wait at most `deadlines.question_seconds`; while OPA is down fail at once.

        Raises GateError policy_engine_timeout for silence and policy_engine_unavailable for everything else that is
        not a whole decision. Raises BudgetUnread for a question without the budget, since OPA's rules may read it. A
        remembered decision is answered at once, without a checkpoint.
        """
        if question.calls_remaining is UNSET:
            raise BudgetUnread
        memo = self._memo if self._standing.is_up else NO_REVISION
        if isinstance(memo, Memo):
            remembered = memo.get(memo.key_of(question))
            if remembered is not None and self._heartbeat.counts():
                self._note_remembered()
                return remembered
        self._standing.check()
        asked_at, seconds = trio.current_time(), self.deadlines.question_seconds
        with trio.move_on_after(seconds):
            decision = await self._asked(question)
            # SECURITY: what was decided under other bundles is not kept under those of now.
            if isinstance(memo, Memo) and memo is self._memo:
                memo.put(memo.key_of(question), decision)
            return decision
        self._standing.check()
        if not self._standing.is_up:
            raise GateError(UNAVAILABLE, cause="OPA did not hold the access lists in time")
        cause = f"OPA did not answer within {seconds:g} s"
        if self._heard_at < asked_at:
            # An OPA that still answers others is busy with this question, not hung.
            self._fail(TIMEOUT, cause)
        raise GateError(TIMEOUT, cause=cause)

    async def require_life(self) -> None:
        """See PolicyEngine. An OPA without any decision does not count as alive."""
        cause = "OPA gives no sign of life"
        try:
            with trio.move_on_after(self.deadlines.question_seconds):
                await self._standing.until_proven()
                while not await self._look_for_life():
                    self._doubt()
                    await self._standing.until_proven()
                if self.is_available:
                    return
                cause = "OPA has no decision"
        except GateError as error:
            cause = error.cause or cause
        except _NOT_DONE as error:
            cause = str(error)
        raise GateError(UNAVAILABLE, cause=cause)

    async def _look_for_life(self) -> bool:
        """Look once, and note the sign of life; returns whether our documents are there. Raises _NOT_DONE."""
        asked_at, digest = trio.current_time(), self._pushed.digest
        is_there = (await self._pushed.look()).digest == digest
        if is_there:
            self._heard_at = trio.current_time()
            self._heartbeat.prove(asked_at)
        return is_there

    async def _asked(self, question: Question) -> Decision:
        body = _encode({"input": question.as_input()})
        while True:
            await self._standing.until_proven()
            try:
                asked_at = trio.current_time()
                answer = await self._lines.ask("POST", self._target, body, self._pushed.prove)
                self._heard_at = trio.current_time()
                self._heartbeat.prove(asked_at)
                return self._decision(answer)
            except NotHeld:
                self._doubt()
            except OpaUnreached as error:
                self._fail(UNAVAILABLE, str(error))
                raise GateError(UNAVAILABLE, cause=str(error)) from None
            except (wire.NotUnderstood, GateError) as error:
                # Perhaps of this question alone: a look tells.
                self._look_soon()
                cause = error.cause if isinstance(error, GateError) else str(error)
                raise GateError(UNAVAILABLE, cause=cause) from None

    def _decision(self, answer: wire.OpaAnswer) -> Decision:
        """Raises NotUnderstood, GateError."""
        members = wire.found_in(answer)
        self._note_revision(members.revision)
        document = wire.document_in(members)
        if document is None:
            raise wire.NotUnderstood("data.gateway.decision is undefined in OPA")
        return parse_decision(document)

    def _note_revision(self, revision: str | None) -> None:
        if self._remembers and (revision != self._memo_revision or isinstance(self._memo, str)):
            self._memo_revision = revision
            self._memo = NO_REVISION if revision is None else Memo(tuple(ATTRIBUTES))

    def _forget(self) -> None:
        if self._remembers:
            self._memo, self._memo_revision = NO_REVISION, None

    # ------------------------------------------------------------------ how it stands

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look how OPA stands, in rounds and whenever it is in doubt, until cancelled; then nothing is decided."""
        try:
            task_status.started()
            while True:
                with trio.move_on_after(self._pause()):
                    await self._wanted.wait()
                self._wanted = trio.Event()
                if self._pushed.sources is not None:
                    await self._look()
                    await trio.sleep(self.deadlines.opa.least_pause_seconds)
        finally:
            self._standing.end()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await self._lines.close()

    def _pause(self) -> float:
        deadlines = self.deadlines.opa
        if not self._failures:
            return deadlines.busy_round_seconds if self._heartbeat.is_wanted else deadlines.round_seconds
        doublings = min(self._failures - 1, 16)
        return float(min(deadlines.first_pause_seconds * 2**doublings, deadlines.longest_pause_seconds))

    async def _look(self) -> None:
        """Look once, and push missing documents again."""
        try:
            await self._mend()
        except trio.TooSlowError:
            self._fail(TIMEOUT, "OPA did not answer in time", is_look=True)
        except _NOT_DONE as error:
            self._fail(UNAVAILABLE, str(error), is_look=True)

    async def _mend(self) -> None:
        deadlines, digest = self.deadlines.opa, self._pushed.digest
        with trio.fail_after(deadlines.look_seconds):
            is_there = await self._look_for_life()
        if not is_there:
            self._doubt()
            if self._loading.locked():
                return  # a load is changing the documents, and pushes them itself
            log.warning("OPA does not hold the access lists: they are pushed again")
            with trio.fail_after(deadlines.push_seconds):
                is_there = await self._pushed.put()
        if not is_there or digest != self._pushed.digest:
            return
        self._heard_at = trio.current_time()
        self._note_revision(self._pushed.revision)
        if self._standing.is_down or self._rounds_to_probe <= 0 or not self._decides:
            with trio.fail_after(deadlines.look_seconds):
                await self._probe()
        self._rounds_to_probe -= 1
        self._failures = 0
        if not self._standing.is_up and digest == self._pushed.digest:
            self._standing.prove()

    async def _probe(self) -> None:
        """Ask the most ordinary question, and note whether there is a decision."""
        problem = None
        try:
            body = _encode({"input": self._pushed.probe.as_input()})
            self._decision(await self._lines.ask("POST", self._target, body, self._pushed.prove))
        except (wire.NotUnderstood, GateError) as error:
            problem = (error.cause or "") if isinstance(error, GateError) else str(error)
        except NotHeld:
            problem = "OPA lost the access lists"
        if problem is not None and self._decides:
            log.warning("OPA has no decision", cause=problem)
        self._decides = problem is None
        self._rounds_to_probe = self.deadlines.opa.probe_rounds

    def _fail(self, code: str, cause: str, *, is_look: bool = False) -> None:
        self._standing.fail(code, cause)
        self._forget()
        if is_look:
            self._failures += 1
        else:
            self._wanted.set()

    def _doubt(self) -> None:
        if not self._standing.is_down:
            self._standing.doubt()
        self._forget()
        self._wanted.set()

    def _look_soon(self) -> None:
        self._rounds_to_probe = 0
        self._wanted.set()

    # ------------------------------------------------------------------ policies

    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        """Reach OPA, await `commit`, then have the documents of `sources` in its data.

        Raises PolicyRefused for data that can't be pushed, PolicyUnreached, and what `commit` raises. Without a
        `commit` others have agreed on it already: it is the one to be put in force then, reached or not.
        """
        documents = wire.documents_of(sources.data)
        async with self._loading:
            is_first = self._pushed.sources is None
            if commit is not None:
                await self._reach(may_fail=is_first and self._may_begin_alone)
                await commit()
            # SECURITY: from here on nothing is decided over the documents before.
            self._pushed.adopt(sources, documents)
            self._forget()
            self._standing.doubt()
            await self._bring(is_first=is_first)

    async def _reach(self, *, may_fail: bool) -> None:
        try:
            with self._told(is_committed=False), trio.fail_after(self.deadlines.opa.look_seconds):
                await self._pushed.look()
        except PolicyUnreached:
            if not may_fail:
                raise

    @contextlib.contextmanager
    def _told(self, *, is_committed: bool) -> Iterator[None]:
        try:
            yield
            return
        except trio.TooSlowError:
            code, cause = TIMEOUT, "OPA did not answer in time"
        except _NOT_DONE as error:
            code, cause = UNAVAILABLE, str(error)
        self._fail(code, cause)
        raise PolicyUnreached(code, cause, is_committed=is_committed)

    async def _bring(self, *, is_first: bool) -> None:
        must_reach = not (is_first and self._may_begin_alone)
        try:
            with self._told(is_committed=True), trio.fail_after(self.deadlines.opa.push_seconds):
                is_there = await self._pushed.put()
            if is_there:
                self._standing.prove()
            if is_there and is_first:
                with self._told(is_committed=True), trio.fail_after(self.deadlines.opa.look_seconds):
                    await self._probe()
        except PolicyUnreached:
            if must_reach:
                raise
        finally:
            self._look_soon()
        if is_first and must_reach and not self._decides:
            cause = "data.gateway.decision is no decision in OPA: load the rules there first"
            raise PolicyUnreached(UNAVAILABLE, cause, is_committed=True)
