"""Shell completion of names: contexts, actions, holds, unresolved intents. Silent when they can't be read."""

import contextlib
from collections.abc import Iterator

import click

from gateway_client.cli.desk import CliContext
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure
from gateway_client.errors import GatewayError


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    with contextlib.suppress(GatewayError, Failure, ValueError, OSError):
        yield


def held(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids of what waits."""
    approval_ids: list[str] = []
    desk = context.ensure_object(CliContext)
    with _silently(), desk.operator(timeout=desk.completion_seconds) as operator:
        approval_ids = [one.approval_id for one in operator.approvals("pending").approvals]
    return _fitting(approval_ids, incomplete)


def unresolved(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids of intents without a receipt."""
    intent_ids: list[str] = []
    desk = context.ensure_object(CliContext)
    with _silently(), desk.operator(timeout=desk.completion_seconds) as operator:
        intent_ids = [one.intent_id for one in operator.intents()]
    return _fitting(intent_ids, incomplete)


def actions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Ids of the registered actions."""
    action_ids: list[str] = []
    desk = context.ensure_object(CliContext)
    with _silently(), desk.agent(timeout=desk.completion_seconds) as agent:
        action_ids = [one.action_id for one in agent.actions()]
    return _fitting(action_ids, incomplete)


def contexts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of the context file."""
    names: list[str] = []
    with _silently():
        names = list(context.ensure_object(CliContext).settings.contexts.by_name)
    return _fitting(names, incomplete)


def _fitting(words: list[str], incomplete: str) -> list[str]:
    """SECURITY: a shell puts these into a command line, so whatever is no plain name is not offered."""
    return [one for one in words if one.startswith(incomplete) and one == safe(one) and " " not in one]
