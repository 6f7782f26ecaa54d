"""The rules that an operator wants to keep from an approved call: a domain, a path, both, or nothing.

Guarantees that a wish which is not well-formed, or can't be granted to this action, is refused before the hold is
claimed, and that nothing is learned unless the call did what it should. A rule that could
not be stored is reported beside the result, and never changes the answer.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from frontend.actions.registry import Registry
from frontend.auth.authentication import OperatorCaller
from frontend.calls.executed import ExecutedCall
from frontend.egress.learned import LearnedRules
from frontend.egress.rules import DOMAINS, PATHS, InvalidRule, LearnedKind, below_root
from frontend.errors import GateError
from frontend.telemetry.logs import log
from ipc.plan import Plan


class Wish(NamedTuple):
    """The rules to keep, in normal form. `given` is an absolute path as the operator gave it."""

    domain: str | None = None
    path: str | None = None
    given: str | None = None

    @classmethod
    def of(cls, domain: str | None, path: str | None, root: str | None = None) -> "Wish":
        """A wish in the operator's words, for an action with this root. Raises GateError invalid_domain,
        invalid_path."""
        wished = _normal(PATHS, None if path is None else below_root(path, root))
        return cls(_normal(DOMAINS, domain), wished, None if wished == path else path)

    def rules(self) -> list[tuple[LearnedKind, str]]:
        """The rules that are wished for."""
        return [(kind, text) for kind, text in ((DOMAINS, self.domain), (PATHS, self.path)) if text is not None]

    def __str__(self) -> str:
        return ", ".join(f"learns {kind.noun} {text}" for kind, text in self.rules())


NO_WISH = Wish()


class Learning(msgspec.Struct, frozen=True):
    """Checks wishes and grants them."""

    learned: LearnedRules
    registry: Callable[[], Registry]

    def check(self, wish: Wish, plan: Plan) -> None:
        """Raises GateError unknown_action for an action that is not registered any more, invalid_domain or invalid_path
        for what the plan's action may not have, too_many_rules and learned_rules_unavailable for what could not be
        kept."""
        if wish.rules() and self.registry().get(plan.action_id) is None:
            raise GateError("unknown_action")
        for kind, text in wish.rules():
            if not _may_have(plan, kind):
                raise GateError(f"invalid_{kind.noun}", message=f"this action may have no {kind.plural}")
            self.learned.check_room(kind, plan.action_id, text)

    async def learn(
        self, wish: Wish, executed: ExecutedCall, operator: OperatorCaller, approval_id: str
    ) -> dict[str, str]:
        """Store the rules. Return fields of the answer: `learned_domain` and `learned_path`, or `learn_error`."""
        told: dict[str, str] = {}
        for kind, text in wish.rules():
            try:
                if executed.closed.verification_outcome == "verification_failed":
                    told["learn_error"] = "verification_failed"
                    continue
                given = wish.given if kind is PATHS else None
                await self.learned.add(kind, executed.action_id, text, operator, approval_id, given=given)
                told[f"learned_{kind.noun}"] = given or text
            except GateError as error:
                log.error("a lesson was not kept", approval_id=approval_id, code=error.code, cause=error.cause)
                told["learn_error"] = error.code
            except Exception:
                log.exception("a lesson was not kept", approval_id=approval_id)
                told["learn_error"] = "internal_error"
        return told


def _normal(kind: LearnedKind, text: str | None) -> str | None:
    try:
        return None if text is None else kind.normal(text)
    except InvalidRule as error:
        raise GateError(f"invalid_{kind.noun}", message=f"learn_{kind.noun}: it {error}") from None


def _may_have(plan: Plan, kind: LearnedKind) -> bool:
    return plan.egress.profile != "none" if kind is DOMAINS else plan.files is not None
