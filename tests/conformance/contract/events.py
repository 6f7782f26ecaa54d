"""Events."""

from tests.conformance.contract.table import Table

EVENTS = Table(
    "events",
    "Events",
    {
        "1-one-per-decision": "each decision leaves one event",
        "1-AdminDrain": "a drain leaves AdminDrain",
        "1-AdminReload": "a reload leaves AdminReload",
        "1-allowlist": "changes of the allowlist leave an event each",
        "1-revoke-all": "revoke-all leaves an event",
        "1-receipt-keys": "a look at the receipt keys leaves an event",
        "1-chained": "each event carries the hash of the one before it",
        "1-queryable": "events are found by query",
        "1-verifiable": "the chain can be verified, and is whole",
        "1-status-silent": "status is not audited",
        "2-intent-then-receipt": "the intent is there before the provider runs, the receipt after",
        "3-webhooks-off": "without `[[webhooks]]` there are none, and status says so",
        "3-delivered": "notifications are sent to the configured endpoints",
        "3-signed": "each is signed with the endpoint's secret over the raw body",
        "3-skew": "a receiver may allow 300 seconds of skew",
        "3-4xx": "a 4xx answer is not retried",
        "3-5xx": "5xx and timeouts are retried with back-off (1, 5, 30 seconds)",
        "3-dead-letter": "after the last retry it is set aside, with a warning in the log",
        "3-private-addresses": "targets on private or reserved addresses are blocked",
        "3-dns-failure": "a name that does not resolve counts as undeliverable",
        "4-polling": "an agent learns of a decision by polling",
    },
)

TABLES = (EVENTS,)
