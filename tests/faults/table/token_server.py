"""A dependency of calls with tokens: the server that gives them, which the broker asks."""

from tests.faults.table.rows import START, Row, Table

_FAILED = "502 action_execution_failed"
_CALLS_FAIL = {"execute": _FAILED, "execute with a budget": _FAILED, "approve": _FAILED}
_REFUSALS = ('gate_action_calls_total{action_id="with_token",code="action_execution_failed"} rises',)


def _no_token(seen: str, do: str, log: str) -> Row:
    return Row(seen, do, _CALLS_FAIL, _REFUSALS, f"no token for the secret client: {log}")


TOKEN_SERVER = Table(
    "token server",
    "Only actions with `oauth2_client_credentials` need it, and only without a token that still serves: the cells are "
    "of calls that have none. A call fails before anything is dispatched (`X-Failure: secret_missing`, "
    "`X-May-Have-Run: no`) and is given back to its budget, and a held one goes on waiting. After a failure the broker "
    "asks for the same token again after 5 s; calls meanwhile fail at once. A broker that dies or hangs is replaced "
    "(`tests/integration/test_client_credentials.py`).",
    {
        START: _no_token(
            "No process listens at its address; the gateway starts all the same.", "start it", "the token server: "
        ),
        "refuses": _no_token("It no longer listens.", "bring it back", "the token server: "),
        "hangs": _no_token(
            "It takes connections and says nothing. The first call waits for 10 s, or as long as it may take.",
            "look at its log", "the token server gave no whole answer within 10 s",
        ),
        "resets in the middle": _no_token(
            "Connections break in the middle of its answers.", "look at what is between",
            "the token server: the connection ended without a whole answer",
        ),
        "garbage": _no_token(
            "The process there does not speak HTTP.", "correct `token_url`",
            "the token server: the connection ended without a whole answer",
        ),
        "slow": Row("Each of its answers comes late, and within 10 s.", "look at its load"),
        "read-only": "the broker only asks it for tokens",
        "full": _no_token(
            "It can't store the tokens that it gives, and answers 507.", "give it room", "the token server answered 507"
        ),
        "loses its data": _no_token(
            "It knows the client no more, and answers 401.",
            "register the client, or put the right secret into the file",
            "the token server answered 401 invalid_client",
        ),
        "clock differs": _no_token(
            "By its clock the token that it gives is over.", "set its clock",
            "the token server gave a token whose time is over",
        ),
    },
)  # fmt: skip
