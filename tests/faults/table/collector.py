"""A dependency of no call: the collector, to which the exporter sends spans and audit events."""

from tests.faults.table.rows import START, Row, Table

_DROPPED = ('gate_otlp_spans_total{outcome="dropped"} rises',)
_LATER = "bring it back; events come then, and spans of longer than the last 20 s, and those without room, are lost"

COLLECTOR = Table(
    "collector of spans and events",
    "No call waits for it: every cell is as without a fault. A batch is tried for 20 s, and up to 2,048 calls of a "
    "front wait meanwhile; the rest is dropped and counted. Audit events wait in the ledger and come once it is back "
    "(`docs/telemetry.md`). An exporter that dies is replaced (`tests/integration/test_spans.py`, "
    "`test_event_logs.py`).",
    {
        START: Row("No process listens at its address; the gateway starts all the same.", _LATER),
        "refuses": Row("It no longer listens.", _LATER),
        "hangs": Row("It takes the request and says nothing.", _LATER),
        "resets in the middle": Row("The connection breaks while it answers.", _LATER),
        "garbage": Row("Its answers are not HTTP.", "correct `telemetry.otlp.endpoint`"),
        "slow": Row(
            "It answers late, and within 10 s.", "nothing", metrics=('gate_otlp_spans_total{outcome="exported"} rises',)
        ),
        "read-only": Row("It answers 503: it can't write.", _LATER),
        "full": Row(
            "It answers 507: it has no room.", "give it room", metrics=_DROPPED,
            log="spans are dropped: the collector does not take them",
        ),
        "loses its data": "what it has taken is its own: nothing of it is sent again",
        "clock differs": "spans and events have the gateway's times, and the collector judges none of them",
    },
)  # fmt: skip
