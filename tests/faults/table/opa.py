"""The policy engine over REST (`opa_url`)."""

from typing import Any

from tests.faults.table.rows import START, Refused, Row, Table

_METRICS = (
    'gate_dependency_up{dependency="policy"} 0', 'gate_readiness_degraded_total{reason="policy"} rises',
)  # fmt: skip


def _down(seen: str, do: str, code: str = "policy_engine_unavailable", **more: Any) -> Row:
    answers = {
        "execute": f"503 {code}", "execute with a budget": f"503 {code}",
        "approve": "503 policy_engine_unavailable", "readiness": "503 not_ready", "status": "200 degraded",
    }  # fmt: skip
    metrics = (*_METRICS, f'gate_policy_request_errors_total{{operation="decide",code="{code}"}} rises')
    return Row(seen, do, answers, metrics, "the policy engine is down", **more)


OPA = Table(
    "OPA",
    "It decides every call, and must give a sign of life before a held call is executed. Leases, evidence and status "
    "need no decision. Its answers that are HTTP and no decision are in `docs/policy.md`.",
    {
        START: Refused(
            "No process listens at its address.",
            "start OPA with its rules first; a service manager tries again",
            69,
            "the front can't start",
        ),
        "refuses": _down("It no longer listens.", "bring it back: it is given the access lists, then asked"),
        "hangs": _down(
            "It takes connections and says nothing. The first question costs a second, later ones nothing.",
            "look at its log: a rule that loops, a bundle that is too large for its processor",
            "policy_engine_timeout",
        ),
        "resets in the middle": _down(
            "Connections break while it answers.", "look at what is between: a balancer, a sidecar"
        ),
        "garbage": _down("The process there does not speak HTTP.", "correct `opa_url`"),
        "slow": Row(
            "Each of its answers comes late, and within a second.",
            "look at `gate_policy_request_duration_seconds`; `opa_memo` asks less often",
            metrics=("gate_policy_request_duration_seconds_sum rises",),
        ),
        "read-only": "only a change of the access lists writes there (`docs/policy.md`): none of these operations does",
        "full": "it keeps what it is given in memory: one that has none left has ended, as in `refuses`",
        "loses its data": Row(
            "A new one has replaced it, without the access lists. A question waits until they are pushed.",
            "nothing",
            log="OPA does not hold the access lists: they are pushed again",
        ),
        "clock differs": "the rules that are delivered ask for no time, and no answer of its has one that counts",
    },
)
