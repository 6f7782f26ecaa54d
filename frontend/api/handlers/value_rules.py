"""Thresholds and caps in the data of the policy in force."""

from typing import TypeVar

import msgspec

from contract.noun import LEFT_OUT
from contract.value_rules import CapList, CapView, SubjectUse, ThresholdList, ThresholdView, ValueRuleChanged
from frontend.api.handlers.policies import CHANGING
from frontend.auth.authentication import OperatorCaller, asker_of
from frontend.configuration.value_rules import ValueRules
from frontend.contract.annotations import codes
from frontend.contract.forms import JsonBody
from frontend.contract.value_rules import CapQuery, CapToSet, ThresholdToSet, ValueRulesToClear
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.policy.cap_pages import page_of
from frontend.policy.data import is_action
from frontend.policy.value_rules import Cap, Threshold, told
from frontend.services import Services
from ipc.operations.caps import CapSums, SumCap

_Rule = TypeVar("_Rule", Threshold, Cap)


@codes("policy_engine_unavailable")
async def thresholds(services: Services, _operator: OperatorCaller) -> ThresholdList:
    """Show the thresholds of every action."""
    await services.configuration.use_newest_policy()
    data = services.authority.data
    views = tuple(
        ThresholdView(action_id=action_id, **msgspec.to_builtins(one))
        for action_id, several in sorted(data.thresholds.items())
        for one in several
    )
    return ThresholdList(thresholds=views, policy_version=data.policy_version)


@codes("action_not_found", *CHANGING)
async def set_threshold(services: Services, form: ThresholdToSet, operator: OperatorCaller) -> ValueRuleChanged:
    """Hold or deny calls of an action by one of their values, from the next call on.

    It takes the place of one with the same pointer and rule. The pointer is one of the manifest's `policy_input`.
    """
    threshold = _rule(form, Threshold)
    data = await ValueRules(services.authority, operator).set_threshold(form.action_id, threshold)
    return ValueRuleChanged(action_id=form.action_id, pointer=form.pointer, policy_version=data.policy_version)


@codes("threshold_not_found", *CHANGING)
async def clear_thresholds(services: Services, form: ValueRulesToClear, operator: OperatorCaller) -> ValueRuleChanged:
    """Take the thresholds of a pointer of an action away, or all of the action, from the next call on."""
    _check_action(form.action_id)
    data = await ValueRules(services.authority, operator).clear_thresholds(form.action_id, form.pointer)
    return ValueRuleChanged(action_id=form.action_id, pointer=form.pointer, policy_version=data.policy_version)


@codes("policy_engine_unavailable", "budget_store_unavailable")
async def caps(services: Services, query: CapQuery, operator: OperatorCaller) -> CapList:
    """Show caps, and what has been used of them: at most 32, by the ids of their actions."""
    await services.configuration.use_newest_policy()
    data = services.authority.data
    page = page_of(data.caps, query.action_id, query.after)
    views = []
    with notary_errors_as("budget_store_unavailable"):
        for action_id, cap in page.caps:
            asked = SumCap(
                action_id, cap.pointer, cap.per, cap.window_seconds, query.used_after, asker_of(operator)
            )  # fmt: skip
            views.append(_cap_view(action_id, cap, await services.notary.ask(asked)))
    return CapList(caps=tuple(views), policy_version=data.policy_version, next=page.next)


@codes("action_not_found", *CHANGING)
async def set_cap(services: Services, form: CapToSet, operator: OperatorCaller) -> ValueRuleChanged:
    """Bound the sum of a value within a rolling window, from the next call on.

    It takes the place of one with the same pointer, subject and window.
    """
    data = await ValueRules(services.authority, operator).set_cap(form.action_id, _rule(form, Cap))
    return ValueRuleChanged(action_id=form.action_id, pointer=form.pointer, policy_version=data.policy_version)


@codes("cap_not_found", *CHANGING)
async def clear_caps(services: Services, form: ValueRulesToClear, operator: OperatorCaller) -> ValueRuleChanged:
    """Take the caps of a pointer of an action away, or all of the action, from the next call on."""
    _check_action(form.action_id)
    data = await ValueRules(services.authority, operator).clear_caps(form.action_id, form.pointer)
    return ValueRuleChanged(action_id=form.action_id, pointer=form.pointer, policy_version=data.policy_version)


def _rule(form: ThresholdToSet | CapToSet, kind: type[_Rule]) -> _Rule:
    _check_action(form.action_id)
    members = {name: value for name, value in _members(form).items() if value is not None and name != "action_id"}
    try:
        return msgspec.convert(members, kind)
    except msgspec.ValidationError as error:
        raise GateError("invalid_input", message=told(error)) from None


def _members(form: JsonBody) -> dict[str, object]:
    return {name: getattr(form, name) for name in form.__struct_fields__}


def _check_action(action_id: str) -> None:
    if not is_action(action_id):
        message = "action_id: letters, digits and . _ -, at most 256, beginning with a letter or digit"
        raise GateError("invalid_input", message=message)


def _cap_view(action_id: str, cap: Cap, counted: CapSums) -> CapView:
    used = [
        SubjectUse(subject=one.subject or None, total=one.total, unknown=one.unknown) for one in counted.sums
    ]  # fmt: skip
    return CapView(
        action_id=action_id, used=tuple(used), used_next=LEFT_OUT if counted.last is None else counted.last,
        **msgspec.to_builtins(cap),
    )  # fmt: skip
