"""Authentication models and DPoP."""

from tests.conformance.contract.table import Table

MODELS = Table(
    "auth-models",
    "Authentication models",
    {
        "lease-execute": "execute takes a lease and its proof, nothing else",
        "lease-poll": "poll takes a lease and its proof, nothing else",
        "lease-receipt": "receipt retrieval by agents takes a lease and its proof, nothing else",
        "operator": "every admin endpoint takes an operator's API key and its proof, nothing else",
        "none-healthz": "GET /healthz needs none",
        "none-readyz": "GET /readyz needs none",
        "none-leases": "POST /v1/leases needs none",
        "none-jwks": "GET /.well-known/jwks.json needs none",
        "none-actions": "GET /v1/actions needs none",
        "none-action": "GET /v1/actions/{action_id} needs none",
        "none-request-schema": "GET /v1/actions/{action_id}/schema/request needs none",
        "principal": "who the caller is comes from the identity provider, not from what it says",
        "unmapped": "a user id without a mapping gets no lease",
        "operators-named": "operators are named, and bound to a key by its thumbprint",
    },
)

CLAIMS = Table(
    "dpop-claims",
    "DPoP proof claims",
    {
        "htm": "the method of the request",
        "htu": "the full URI: public_base_url and the path",
        "iat": "within the window of the clock",
        "jti": "unique, and good once",
        "ath": "the hash of the access token, base64url",
    },
)

RULES = Table(
    "dpop-rules",
    "DPoP rules",
    {
        "1-public-base-url": "htu is held against public_base_url, whatever the Host header says",
        "2-replay": "a repeated jti is 401 replay_detected",
        "2-store-down": "with the store unreachable it is 503 replay_cache_unavailable",
        "3-wrong-htu": "a wrong htu is 401 invalid_dpop",
        "3-wrong-key": "a wrong key is 401 invalid_dpop",
        "3-iat-outside": "an iat outside the window is 401 invalid_dpop",
        "4-retry": "the same proof on a retry is refused, even when the first try was",
        "5-lease-lifetime": "a lease lives five minutes by default",
        "5-renewal": "the public client renews when fewer than 60 seconds remain",
    },
)

TABLES = (MODELS, CLAIMS, RULES)
