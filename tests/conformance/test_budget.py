"""Budget: max_calls, counted down."""

import threading

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.support.gateway import ANSWER_SECONDS


@row("budget/decremented")
def test_of_many_calls_at_once_no_more_than_the_budget_run(gate: Deployment) -> None:
    agent = gate.agent(max_calls=5)
    codes: list[int] = []

    def call() -> None:
        codes.append(agent.execute("text_digest", {"text": "x"}).status_code)

    threads = [threading.Thread(target=call) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ANSWER_SECONDS)
    assert sorted(codes) == [200] * 5 + [403] * 7
    left = [
        one["budgets_after"]["calls_remaining"]
        for one in gate.events(session_id=agent.session_id, event_type="ActionCall", decision="allow")
    ]
    assert sorted(left) == [0, 1, 2, 3, 4]
