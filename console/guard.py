"""The check that a request comes from the console's own page, at the console's one address.

Guarantees that a page of another site, and a name of another site that leads to this address (DNS rebinding), gets
nothing of the gateway's and forwards nothing to it, and that no answer can be framed, sniffed or read by one.
Needs no token against forged requests: none counts without a proof that only the page can make.
"""

from collections.abc import Sequence
from typing import Final

from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'",
        "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
    )
)  # fmt: skip
SECURITY_HEADERS: Final = (
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)
"""Headers of the console's own answers; all answers have `Cache-Control: no-store` (serving/application.py)."""
TEXT_TYPE: Final = "text/plain; charset=utf-8"


class Guard:
    """Knows the console's own origin, `http://127.0.0.1:3080` and the like."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._host = origin.partition("://")[2]

    def refusal(self, request: Request, *, is_page: bool) -> Answer | None:
        """The answer to a request that is not the page's own; None for one that is. `is_page`: it asks for a part of
        the page itself, which a link may lead to."""
        if _values(request, "host") != [self._host]:
            return Answer(403, f"This console is at {self._origin}/ alone.\n".encode(), content_type=TEXT_TYPE)
        is_own = all(value == self._origin for value in _values(request, "origin"))
        sites = _values(request, "sec-fetch-site")
        is_followed = is_page and _values(request, "sec-fetch-mode") == ["navigate"]
        if not is_own or not (is_followed or set(sites) <= {"same-origin", "none"}):
            return json_answer(403, {"error": "foreign_request"})
        return None


def _values(request: Request, name: str) -> Sequence[str]:
    return [value for header, value in request.headers if header == name]
