"""http_status: every request that the host sent for this call was answered as expected.

`{"expected": [200, 201, "2xx"]}`, default 2xx. All requests count, so that a provider can't cover a refused effect
with a harmless one that succeeds. Only an answer 401 after which the host itself sent the request once more, with
another token, does not: the answer after it is the request's. The provider's own word about the status is not read.
"""

from typing import Any

from workers.verifiers.evidence import Evidence, Unverified

_DEFAULT = ["2xx"]


def verify_http_status(evidence: Evidence) -> dict[str, Any]:
    """Evidence `{kind, target, status, body_sha256}` of the last request, and `resent` where one was sent once more.

    Raises Unverified.
    """
    expected = evidence.config.get("expected", _DEFAULT)
    if not isinstance(expected, list) or not expected:
        raise Unverified("verification_config.expected is not a list")
    seen = [observation for observation in evidence.observations if observation.kind == "http"]
    if not seen:
        raise Unverified("the host saw no request")
    answers = [observation for observation in seen if not observation.resent]
    if not answers:
        raise Unverified("a request had no answer")
    for observation in answers:
        if not observation.ok or observation.status is None:
            raise Unverified("a request had no answer")
        if not any(_fits(observation.status, item) for item in expected):
            raise Unverified(f"the host saw status {observation.status}")
    last = answers[-1]
    resent = {"resent": True} if len(answers) < len(seen) else {}
    shown = {"target": last.target, "status": last.status, "body_sha256": last.body_sha256}
    return {"kind": "http_status"} | shown | resent


def _fits(status: int, expected: object) -> bool:
    if isinstance(expected, str):
        return len(expected) == 3 and expected.endswith("xx") and str(status)[0] == expected[0]
    return type(expected) is int and status == expected
