"""What the service is and does as a whole, and what it refuses to start with."""

from tests.conformance.contract.table import Table

PIPELINE = Table(
    "pipeline",
    "What the service does: the steps of a call",
    {
        "1-authenticated": "a call without a lease that is bound to the caller's key is refused before anything else",
        "2-policy-allows": "policy may allow: the call runs, and its event names version and rule of the policy",
        "2-policy-denies": "policy may deny: nothing runs, nothing is debited",
        "2-policy-holds": "policy may hold: nothing runs until a person has decided",
        "3-budget": "an allowed call takes one from the session's budget",
        "4-held": "a held call runs only after an operator has approved it",
        "5-limits": "the provider runs under the limits of its manifest",
        "6-evidence": "a call that ran leaves a signed receipt and a chained event that name each other",
    },
)

SERVICE = Table(
    "service",
    "Rules that hold for the whole service",
    {
        "fail-closed-store": "with the key-value store gone no call is allowed, and the answer is a 5xx",
        "fail-closed-policy": "with the policy engine gone no call is allowed, and the answer is a 5xx",
        "fail-closed-clock": "with a clock known to be wrong no call is allowed, and the answer is a 5xx",
        "two-listeners": "client and admin endpoints have a socket each, and are unknown on the other's",
        "merged-in-dev": "in dev mode one TCP address serves the endpoints of both sockets",
        "no-tls": "the service speaks plain HTTP on its sockets and on TCP, and no TLS",
        "store-holds-replay-cache": "a proof that was used before a restart is refused after it",
        "store-holds-budgets": "a budget that was spent before a restart is spent after it",
        "store-holds-approvals": "a hold from before a restart can be approved after it",
        "store-holds-epoch": "a revocation from before a restart is in force after it",
        "ledger-holds-events": "events from before a restart are found after it, and the chain goes on",
        "ledger-holds-intents": "an intent that nobody resolved before the end of the process shows after a restart",
        "ledger-holds-receipts": "a receipt from before a restart is found after it",
    },
)

START = Table(
    "start",
    "What production refuses to start with",
    {
        "safe": "a configuration that breaks no rule starts, and shows nothing as weakened",
        "identity-none": "identity provider `none`",
        "shared-operator-key": "an operator's API key without a key thumbprint, and no operators at all",
        "tcp-without-unsafe": "a TCP listener without `unsafe_expose_http`",
        "ephemeral-receipt-key": "no path for the receipt signing key",
        "ephemeral-grant-key": "no path for the grant signing key",
        "ephemeral-receipt-jwks": "no path for the published receipt keys",
        "schema-warn": "`response_schema_enforcement` equal to `warn`",
        "allow-unmapped": "peer credentials with `allow_unmapped = true`",
        "proxy-profile-without-proxy": "an action with the profile `proxy_allowlist` while no proxy is configured",
        "all-at-once": "a configuration that breaks all nine rules is told nine problems, by start and check",
        "store-unreachable": "a key-value store that can't be opened ends the start",
        "manifests-unloadable": "manifests that can't be loaded end the start",
        "wasm-runtime": "a WebAssembly runtime that can't get ready ends the start",
    },
)

TABLES = (PIPELINE, SERVICE, START)
