"""The operator's calls about thresholds and caps: bounds of values of requests, and of their sums. No I/O."""

from collections.abc import Mapping

from gateway_client.contract.value_rules import CapView, ThresholdView, ValueRuleChanged
from gateway_client.decoding import decode
from gateway_client.flows import Flow
from gateway_client.operator_calls import OperatorCalls, listed
from gateway_client.wire import path_of

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

    def caps(self) -> Flow[tuple[CapView, ...]]:
        """The caps of every action."""
        return listed(CapView, (yield from self.read(CAPS)), "caps")

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
