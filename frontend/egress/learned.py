"""Rules that operators teach this gateway: domains and paths beyond the manifests, durable in one file for all fronts.

Guarantees that each change is in evidence before it takes effect, and in force for the next call once it is answered;
with live sync the egress proxy has the new list by then. An unreadable file adds no rules, and is never overwritten.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio

from frontend.actions.targets import Learned
from frontend.auth.authentication import OperatorCaller
from frontend.clock import TimeSource
from frontend.egress.proxy_list import ListNotWritten, ProxyAllowList
from frontend.egress.rulefile import RuleFile
from frontend.egress.rules import (
    BY_APPROVAL,
    BY_HAND,
    DOMAINS,
    MAX_PER_ACTION,
    LearnedKind,
    LearnedRule,
    Rules,
    count_of,
    encode_rules,
)
from frontend.errors import GateError, errors_as
from frontend.files.exclusive import NotChanged
from frontend.telemetry.logs import log
from ipc.process.private_files import MAX_FILE_BYTES, PrivateFileError

Edit = Callable[[Rules], Rules]


class RuleEvidence(Protocol):
    """Where changes leave their evidence (frontend/calls/audit_writer.py)."""

    async def operator_act(self, event_type: str, operator: OperatorCaller, **fields: Any) -> None:
        """Write one event, durably. Raises GateError evidence_store_unavailable, clock_error."""


class LearnedRules:
    """The learned rules of this gateway. But for `for_action` and `every`, methods raise GateError, always among others
    learned_rules_unavailable; those that change something also evidence_store_unavailable and clock_error, and for
    domains allowlist_sync_failed."""

    def __init__(self, file: RuleFile, clock: TimeSource, journal: RuleEvidence, allow_list: ProxyAllowList) -> None:
        self._file = file
        self._clock = clock
        self._journal = journal
        self._allow_list = allow_list

    def for_action(self, action_id: str) -> Learned:
        """The rules that the action has learned; none while the file is unreadable. Never raises."""
        return self._file.learned(action_id)

    def listed(self, kind: LearnedKind, action_id: str | None = None) -> list[LearnedRule]:
        """Rules of a kind, of one action or of all, by action and then as they came."""
        rules = [rule for rule in kind.of(self._believed()) if action_id in (None, rule.action_id)]
        return sorted(rules, key=lambda rule: rule.action_id)

    def check_room(self, kind: LearnedKind, action_id: str, text: str) -> None:
        """Raises too_many_rules unless this rule is there already or could be added."""
        rules = self._believed()
        if not _has(rules, kind, action_id, text):
            _refuse_crowd(rules, kind, action_id)

    async def add(
        self, kind: LearnedKind, action_id: str, text: str, operator: OperatorCaller, approval_id: str | None = None, *,
        given: str | None = None,
    ) -> bool:  # fmt: skip
        """Learn one rule in normal form; False, and nothing is done, when it is there already.

        Raises too_many_rules. `approval_id`: learned with this approval. `given`: an absolute path, as it was given.
        """
        source = BY_HAND if approval_id is None else BY_APPROVAL
        rule = LearnedRule(action_id, text, source, self._clock.iso(), operator.name, given)

        def with_it(rules: Rules) -> Rules:
            if _has(rules, kind, action_id, text):
                return rules
            _refuse_crowd(rules, kind, action_id)
            return kind.put(rules, (*kind.of(rules), rule))

        act = _RuleChange(self._journal, kind.added, operator, action_id, text, approval_id)
        return await self._change(kind, with_it, act, gained=self._gained(kind, action_id, text)) > 0

    def _gained(self, kind: LearnedKind, action_id: str, text: str) -> tuple[str, ...]:
        """The domains that the egress proxy must let through for this rule."""
        return (text,) if kind is DOMAINS and self._allow_list.serves(action_id) else ()

    async def remove(self, kind: LearnedKind, action_id: str, text: str, operator: OperatorCaller) -> bool:
        """Forget one rule. Return False if there is no such rule."""

        def without_it(rules: Rules) -> Rules:
            return _without(rules, kind, lambda rule: rule.action_id == action_id and text in (rule.text, rule.given))

        act = _RuleChange(self._journal, kind.removed, operator, action_id, text)
        return await self._change(kind, without_it, act) > 0

    async def clear(self, kind: LearnedKind, action_id: str | None, operator: OperatorCaller) -> int:
        """Forget all rules of a kind, of one action or of all; how many. In evidence even when there were none."""

        def emptied(rules: Rules) -> Rules:
            return _without(rules, kind, lambda rule: action_id in (None, rule.action_id))

        act = _RuleChange(self._journal, kind.cleared, operator, action_id, "")
        return await self._change(kind, emptied, act, even_if_nothing=True)

    async def _change(
        self,
        kind: LearnedKind,
        edit: Edit,
        act: "_RuleChange",
        *,
        gained: tuple[str, ...] = (),
        even_if_nothing: bool = False,
    ) -> int:
        """Evidence first, then the files; by how many rules they differ."""
        with errors_as("learned_rules_unavailable", NotChanged):
            async with self._file.exclusive.turn() as turn:
                before = self._believed()
                after = edit(before)
                count = abs(count_of(after) - count_of(before))
                if count == 0 and not even_if_nothing:
                    await self._synced(kind)  # or a rule that was taken back before might still be in it
                    return 0
                content = encode_rules(after)
                if len(content) > MAX_FILE_BYTES:
                    raise GateError("too_many_rules", message="the file of learned rules is full")
                self._file.expect(content, after)

                async def replace() -> None:
                    if count:
                        await turn.replace(content)

                with trio.CancelScope(shield=True):  # what has begun is finished; each wait has its own deadline
                    await act.make(count, lambda: self._put(kind, gained, replace))
                return count

    async def _put(self, kind: LearnedKind, gained: tuple[str, ...], replace: Callable[[], Awaitable[None]]) -> None:
        """Both files. A domain stands in the proxy's list before it counts, and is gone from there last: a change that
        failed half way has left the list too wide, never too narrow."""
        if not gained:
            await replace()
            await self._synced(kind)
            return
        with errors_as("allowlist_sync_failed", ListNotWritten):
            async with self._allow_list.wider(gained):
                await replace()

    async def _synced(self, kind: LearnedKind) -> None:
        with errors_as("allowlist_sync_failed", ListNotWritten):
            if kind is DOMAINS:
                await self._allow_list.sync()

    def _believed(self) -> Rules:
        with errors_as("learned_rules_unavailable", PrivateFileError):
            return self._file.rules()


class _RuleChange:
    """The evidence of one change."""

    def __init__(
        self, journal: RuleEvidence, event_type: str, operator: OperatorCaller, action_id: str | None, text: str,
        approval_id: str | None = None,
    ) -> None:  # fmt: skip
        self._journal = journal
        self._event_type = event_type
        self._operator = operator
        self._found = {"action_id": action_id, "approval_id": approval_id, "reason": text or None}

    async def make(self, count: int, change: Callable[[], Awaitable[None]]) -> None:
        """Write the event of the change, then make it. If that fails, write an event of the failure, if possible,
        and raise it."""
        try:
            await self._tell(**({"reason": f"{count} rules"} if self._found["reason"] is None else {}))
            await change()
        except NotChanged as error:
            log.error("learned rules were not changed", event_type=self._event_type, cause=str(error))
            await self._take_back("learned_rules_unavailable")
            raise
        except GateError as error:  # an event that the ledger did not confirm may be in it all the same
            await self._take_back(error.code)
            raise

    async def _take_back(self, code: str) -> None:
        try:
            await self._tell(decision="error", error_code=code)
        except GateError as error:
            log.error("a change that failed left no event", event_type=self._event_type, cause=error.cause)

    async def _tell(self, **fields: str) -> None:
        await self._journal.operator_act(self._event_type, self._operator, **(self._found | fields))


def _has(rules: Rules, kind: LearnedKind, action_id: str, text: str) -> bool:
    return any((rule.action_id, rule.text) == (action_id, text) for rule in kind.of(rules))


def _refuse_crowd(rules: Rules, kind: LearnedKind, action_id: str) -> None:
    if sum(rule.action_id == action_id for rule in kind.of(rules)) >= MAX_PER_ACTION:
        message = f"{MAX_PER_ACTION} {kind.plural} are learned for this action; remove some, or write a pattern"
        raise GateError("too_many_rules", message=message)


def _without(rules: Rules, kind: LearnedKind, goes: Callable[[LearnedRule], bool]) -> Rules:
    return kind.put(rules, tuple(rule for rule in kind.of(rules) if not goes(rule)))
