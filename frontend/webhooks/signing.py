"""The signatures by which a receiver knows that a notification is the gateway's: HMAC-SHA256, twice.

Once as Standard Webhooks has it, over id, time and body, and once over the raw body alone, for receivers that can do no
more. Never shows a key.
"""

import base64
import hashlib
import hmac


def signature_headers(key: bytes, event_id: str, moment: int, body: bytes) -> dict[str, str]:
    """Headers of one attempt that was made at `moment` (Unix seconds)."""
    signed = hmac.digest(key, b"%b.%d.%b" % (event_id.encode(), moment, body), hashlib.sha256)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
        "x-gateway-signature": f"sha256={hmac.digest(key, body, hashlib.sha256).hex()}",
    }
