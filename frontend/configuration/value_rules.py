"""Changes of thresholds and caps by operators while the gateway runs, each made as every change of access rights is
(frontend/configuration/access.py)."""

from collections.abc import Callable
from typing import Any

import msgspec

from frontend.auth.authentication import OperatorCaller
from frontend.configuration.access import Authority
from frontend.errors import GateError
from frontend.policy import value_edits
from frontend.policy.data import PolicyData
from frontend.policy.edit import NothingThere, PolicyTooLarge
from frontend.policy.value_rules import Cap, Threshold
from ipc.evidence import events

_Edit = Callable[[PolicyData], PolicyData]


class ValueRules(msgspec.Struct, frozen=True):
    """Sets and clears them for one operator. Raises GateError as Authority does."""

    authority: Authority
    operator: OperatorCaller

    async def set_threshold(self, action_id: str, threshold: Threshold) -> PolicyData:
        """Raises also action_not_found, and invalid_input for a pointer that the action does not offer."""
        edit: _Edit = lambda data: value_edits.set_threshold(data, action_id, threshold)  # noqa: E731
        return await self._set(events.POLICY_THRESHOLD_SET, action_id, threshold, edit)

    async def set_cap(self, action_id: str, cap: Cap) -> PolicyData:
        """As set_threshold."""
        edit: _Edit = lambda data: value_edits.set_cap(data, action_id, cap)  # noqa: E731
        return await self._set(events.POLICY_CAP_SET, action_id, cap, edit)

    async def clear_thresholds(self, action_id: str, pointer: str | None) -> PolicyData:
        """Whether or not the action is still registered. Raises also threshold_not_found."""

        def edit(data: PolicyData) -> PolicyData:
            try:
                return value_edits.clear_thresholds(data, action_id, pointer)
            except NothingThere:
                raise GateError("threshold_not_found") from None

        return await self._clear(events.POLICY_THRESHOLD_CLEARED, action_id, pointer, edit)

    async def clear_caps(self, action_id: str, pointer: str | None) -> PolicyData:
        """Whether or not the action is still registered. Raises also cap_not_found."""

        def edit(data: PolicyData) -> PolicyData:
            try:
                return value_edits.clear_caps(data, action_id, pointer)
            except NothingThere:
                raise GateError("cap_not_found") from None

        return await self._clear(events.POLICY_CAP_CLEARED, action_id, pointer, edit)

    async def _set(self, kind: str, action_id: str, rule: Threshold | Cap, edit: _Edit) -> PolicyData:
        action = self.authority.configuration.current.registry.get(action_id)
        if action is None:
            raise GateError("action_not_found")
        if rule.pointer not in action.manifest.policy_input:
            offered = ", ".join(action.manifest.policy_input) or "none"
            message = f"pointer: is not in the policy_input of the action's manifest, which has: {offered}"
            raise GateError("invalid_input", message=message)

        def changed(data: PolicyData) -> PolicyData:
            try:
                return edit(data)
            except PolicyTooLarge as error:
                raise GateError("invalid_input", message=str(error)) from None

        found = {"action_id": action_id, "change": msgspec.to_builtins(rule)}
        return await self.authority.change_data(kind, self.operator, found, changed)

    async def _clear(self, kind: str, action_id: str, pointer: str | None, edit: _Edit) -> PolicyData:
        change: dict[str, Any] = {} if pointer is None else {"pointer": pointer}
        edit(self.authority.data)
        found = {"action_id": action_id, "change": change}
        return await self.authority.change_data(kind, self.operator, found, edit)
