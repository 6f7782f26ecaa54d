"""The gateway in one line for people."""

import pytest

from ipc.messages.control import FrontStatus
from supervisor.systemd.status_line import ServingSummary, status_line

UP = {"redis": True, "opa": True}


@pytest.mark.parametrize(
    ("standing", "line"),
    [
        (ServingSummary("starting", 1, []), "starting"),
        (
            ServingSummary("serving", 1, [FrontStatus(3, 2, 0, 41, 1.0, UP)]),
            "serving · 41 actions · 2 held · 3 in flight · 0 unresolved · redis ok · opa ok",
        ),
        (
            ServingSummary(
                "serving", 2, [FrontStatus(3, 2, 0, 1, 1.0, UP), FrontStatus(4, 2, 0, 1, 0.0, UP | {"opa": False})]
            ),
            "serving · 1 action · 2 held · 7 in flight · 0 unresolved · redis ok · opa down",
        ),
        (
            ServingSummary("serving", 2, [FrontStatus(0, -1, -1, 5)]),
            "serving · 1 of 2 fronts · 5 actions · held unknown · 0 in flight · unresolved unknown",
        ),
        (
            ServingSummary("serving", 2, [FrontStatus(0, 0, 0, 5), FrontStatus(0, 0, 0, 5, is_ledger_full=True)]),
            "serving · 5 actions · 0 held · 0 in flight · 0 unresolved · ledger full",
        ),
        (ServingSummary("stalled", 1, []), "stalled · 0 of 1 fronts"),
        (
            ServingSummary("serving", 1, [FrontStatus(0, 0, 0, 1)], is_reload_failed=True),
            "serving · 1 action · 0 held · 0 in flight · 0 unresolved · last reload failed, see the log",
        ),
        (
            ServingSummary("draining", 2, [FrontStatus(2, 0, 0, 1, 2.14), FrontStatus(1, 0, 0, 1, 0.3)], 26.7),
            "draining · 3 in flight · oldest 2.1 s · 27 s left",
        ),
        (ServingSummary("draining", 1, [FrontStatus(1, 0, 0, 1, 61.0)]), "draining · 1 in flight · oldest 61.0 s"),
        (ServingSummary("draining", 1, [FrontStatus(0, 0, 0, 1)], -3.0), "draining · 0 in flight · 0 s left"),
        (ServingSummary("stopping", 1, []), "stopping"),
    ],
)
def test_it_says_how_the_gateway_stands(standing: ServingSummary, line: str) -> None:
    assert status_line(standing) == line
