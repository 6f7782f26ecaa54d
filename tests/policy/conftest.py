"""Policies of the repository in a real policy process."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from frontend.policy.engine import PolicySources
from frontend.policy.question import Decision, parse_decision
from ipc.messages.deciding import Ask
from tests.support.policy import DEFAULT_POLICY, PolicyPeer, question

Decide = Callable[..., Decision]


@pytest.fixture(scope="module")
def deciding() -> Iterator[Callable[[dict[str, Any]], Decide]]:
    """Put the default policy with this data in force; returns a function that asks it a question with changes."""
    with ExitStack() as open_peers:

        def with_data(data: dict[str, Any]) -> Decide:
            peer = PolicyPeer()
            open_peers.callback(peer.close)
            version = str(data["policy_version"])
            error = peer.load(PolicySources({"gateway.rego": DEFAULT_POLICY.read_text()}, json.dumps(data), version))
            assert error is None, error

            def decide(**changes: object) -> Decision:
                peer.channel.send(Ask(1, question(**changes).as_input()))
                verdict = peer.verdict()
                assert verdict.document is not None, verdict.error
                return parse_decision(verdict.document)

            return decide

        yield with_data
