"""Dependencies of some calls: the egress proxy, secrets, and the endpoints of webhooks."""

from typing import Any

from tests.faults.table.rows import START, Row, Table

_FAILED = "502 action_execution_failed"
_CALLS_FAIL = {"execute": _FAILED, "execute with a budget": _FAILED, "approve": _FAILED}
_REFUSALS = ('gate_action_calls_total{action_id="through",code="action_execution_failed"} rises',)
_NO_PROXY = (
    'gate_dependency_up{dependency="egress_proxy"} 0', 'gate_readiness_degraded_total{reason="egress_proxy"} rises',
)  # fmt: skip
_NO_SECRETS = dict.fromkeys(_CALLS_FAIL, "503 secrets_unavailable")


def _no_proxy(seen: str, do: str) -> Row:
    return Row(
        seen, do, _CALLS_FAIL | {"readiness": "200 degraded"},
        _NO_PROXY,
        "the egress proxy is down", first="readiness",
    )  # fmt: skip


PROXY = Table(
    "egress proxy",
    "Only actions with the profile `proxy_allowlist` need it; the cells are theirs, all others run. While it is known "
    "to be down nothing is dispatched: a call is given back to its budget, and a held one goes on waiting.",
    {
        START: _no_proxy("No process listens at its address; the gateway starts all the same.", "start the proxy"),
        "refuses": _no_proxy("It no longer listens.", "bring it back"),
        "hangs": _no_proxy("It takes connections and says nothing.", "look at its log and its name server"),
        "resets in the middle": Row(
            "Connections break in the middle of its answers. The first part is valid HTTP, so readiness reports no "
            "problem: calls are dispatched, and fail with a receipt.",
            "look at what is between",
            _CALLS_FAIL,
            _REFUSALS,
            "action_execution_failed",
        ),
        "garbage": _no_proxy("The process there does not speak HTTP.", "correct `egress_proxy_url`"),
        "slow": Row(
            "Each of its answers comes late, and within the time that a call has.",
            "look at its load",
            metrics=("gate_provider_execution_duration_seconds_sum rises",),
        ),
        "read-only": "nothing is written there; where live sync writes its list is a file: `docs/egress.md`",
        "full": "it stores no data of the gateway",
        "loses its data": Row(
            "Its list of names is empty. It refuses the tunnel, and the receipt says so.",
            "put the names back, or let live sync write them (`docs/egress.md`)",
            _CALLS_FAIL,
            _REFUSALS,
            "action_execution_failed",
        ),
        "clock differs": "no answer of a proxy has a time that counts",
    },
)

_READ = "it is read, never asked: a local file that can't be read at once says why"


def _no_secrets(seen: str, do: str, **more: Any) -> Row:
    metrics = ('gate_action_calls_total{action_id="http_post",code="secrets_unavailable"} rises',)
    return Row(seen, do, _NO_SECRETS, metrics, "secrets_unavailable", **more)


def _emptied(seen: str, do: str) -> Row:
    metrics = ('gate_action_calls_total{action_id="http_post",code="action_execution_failed"} rises',)
    return Row(seen, do, _CALLS_FAIL, metrics, "is not in the secrets file", ends_hold=True)


_SET_BACK = Row("Its time of change lies before that of the file before.", "nothing: any other time is another file")

FILE = Table(
    "secrets in a private file",
    "Only actions with `secrets` need it; the cells are theirs. The gateway keeps what it has read for thirty seconds, "
    "and reads the file again after a change.",
    {
        START: _no_secrets("There is no file; the gateway starts all the same.", "put it there, with mode 0600"),
        "refuses": _no_secrets("Its mode lets others in.", "`chmod 0600`, and change what they may have read"),
        "hangs": _no_secrets("It is no regular file: a pipe, say. It is refused at once.", "put a regular file there"),
        "resets in the middle": _no_secrets("It is half written.", "replace it whole (`mv`), never in place"),
        "garbage": _no_secrets("It is not JSON.", "put the right file there"),
        "slow": _READ,
        "read-only": "the gateway never writes it",
        "full": "the gateway never writes it; a disk that is full leaves it half written, as above",
        "loses its data": _emptied("It holds no value by that name.", "add it: the next call has it"),
        "clock differs": _SET_BACK,
    },
)

SOPS = Table(
    "secrets in a SOPS file",
    "As a private file, and it must open with `secrets.age_identity_file`.",
    {
        START: _no_secrets("There is no file; the gateway starts all the same.", "put it there, with mode 0600"),
        "refuses": _no_secrets(
            "The identity is not one that it is encrypted to.", "`sops updatekeys`, or put the right identity there"
        ),
        "hangs": "as a private file: what is no regular file is refused before it is opened",
        "resets in the middle": _no_secrets("It is half written.", "`sops` replaces it whole, and so must a copy"),
        "garbage": _no_secrets("A value was changed without `sops`: the MAC does not fit.", "take it from its history"),
        "slow": _READ,
        "read-only": "the gateway never writes it",
        "full": "the gateway never writes it",
        "loses its data": _emptied("It holds no value by that name.", "`sops set`: the next call has it"),
        "clock differs": _SET_BACK,
    },
)


def _undelivered(seen: str, do: str) -> Row:
    return Row(seen, do, metrics=('gate_webhook_deliveries_total{endpoint="hook",outcome="failed"} rises',))


_LATER = "nothing: it is tried again until its retries are over, then `gatectl webhooks redeliver`"

WEBHOOKS = Table(
    "endpoint of a webhook",
    "No call waits for it: every cell is as without a fault. Undelivered events stay in the outbox, and those that "
    "were given up can be delivered again (`docs/webhooks.md`).",
    {
        START: _undelivered("No process listens at its address; the gateway starts all the same.", _LATER),
        "refuses": _undelivered("It no longer listens.", _LATER),
        "hangs": _undelivered("It takes the request and says nothing until its time is over.", _LATER),
        "resets in the middle": _undelivered("The connection breaks while it answers.", _LATER),
        "garbage": _undelivered("Its answers are not HTTP.", "correct the endpoint's `url`; then as above"),
        "slow": Row(
            "It answers late, and within its time.",
            "nothing",
            metrics=('gate_webhook_deliveries_total{endpoint="hook",outcome="delivered"} rises',),
        ),
        "read-only": _undelivered("It answers 503: it can't write.", _LATER),
        "full": _undelivered("It answers 507: it has no room.", _LATER),
        "loses its data": "what it has taken is its own; `gatectl webhooks redeliver` sends what was given up alone",
        "clock differs": Row(
            "It refuses what is signed for another time: 400, and no retry.",
            "set its clock, then `gatectl webhooks redeliver`",
            metrics=('gate_webhook_drops_total{endpoint="hook",reason="rejected"} rises',),
            log="a webhook was given up",
        ),
    },
)
