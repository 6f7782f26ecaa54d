"""The operator's calls about thresholds and caps: bounds of values of requests, and of their sums. No I/O."""

from collections.abc import Mapping

from gateway_client.contract.value_rules import CapView, ThresholdView, ValueRuleChanged
from gateway_client.errors import ProtocolViolation
from gateway_client.operating.calls import OperatorCalls, listed
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import path_of, query_of
from gateway_client.wire.flows import Flow

THRESHOLDS, CAPS = (path_of("v1", "admin", "policy", name) for name in ("thresholds", "caps"))


class ValueRulesCore(OperatorCalls):
    """Every method gives a flow of one call and its typed result."""

    def thresholds(self) -> Flow[tuple[ThresholdView, ...]]:
        """The thresholds of every action."""
        return listed(ThresholdView, (yield from self.read(THRESHOLDS)), "thresholds")

    def set_threshold(self, action_id: str, pointer: str, rule: Mapping[str, object]) -> Flow[ValueRuleChanged]:
        """Bound a value of an action's requests. `rule` has one of hold_above, deny_above, hold_unless_in and
        deny_unless_in. Raises NotFound action_not_found, Invalid."""
        return (yield from self._change_rule("POST", THRESHOLDS, action_id, {"pointer": pointer, **rule}))

    def clear_thresholds(self, action_id: str, pointer: str | None = None) -> Flow[ValueRuleChanged]:
        """Take the thresholds of a pointer away, or all of the action. Raises NotFound threshold_not_found."""
        return (yield from self._change_rule("DELETE", THRESHOLDS, action_id, {"pointer": pointer}))

    def caps(self, action_id: str | None = None, used_after: str | None = None) -> Flow[tuple[CapView, ...]]:
        """The caps of one action or of all, page by page, each with what 100 of its subjects have used at most. For
        the next ones `used_after` is the cap's `used_next`."""
        caps: list[CapView] = []
        after: str | None = None
        while True:
            query = query_of(action_id=action_id, after=after, used_after=used_after)
            answer = yield from self.read(CAPS, query)
            caps += listed(CapView, answer, "caps")
            following = answer.json().get("next")
            if following is None:
                return tuple(caps)
            if not isinstance(following, str) or (after is not None and following <= after):
                raise ProtocolViolation("the pages of caps do not end", status=answer.status)
            after = following

    def set_cap(self, action_id: str, pointer: str, rule: Mapping[str, object]) -> Flow[ValueRuleChanged]:
        """Bound the sum of a value within a window. `rule` has per, window_seconds, and hold_above or deny_above or
        both. Raises NotFound action_not_found, Invalid."""
        return (yield from self._change_rule("POST", CAPS, action_id, {"pointer": pointer, **rule}))

    def clear_caps(self, action_id: str, pointer: str | None = None) -> Flow[ValueRuleChanged]:
        """Take the caps of a pointer away, or all of the action. Raises NotFound cap_not_found."""
        return (yield from self._change_rule("DELETE", CAPS, action_id, {"pointer": pointer}))

    def _change_rule(
        self, method: str, path: str, action_id: str, members: Mapping[str, object]
    ) -> Flow[ValueRuleChanged]:
        body = {"action_id": action_id} | {name: value for name, value in members.items() if value is not None}
        answer = yield from self.change(method, path, body)
        return decode(ValueRuleChanged, answer.json(), "rule")
