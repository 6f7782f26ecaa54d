"""Principals that a form of the configuration makes of a credential's own words."""

import re
from typing import Final

from ipc.settings import IdentitySettings

_PRINCIPAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}", re.ASCII)
_OURS: Final = re.compile(r"gateway|(?:operator|uid|dev):.*", re.ASCII)
"""Principals that the gateway itself gives."""
_SPIFFE: Final = "spiffe:"
_SPIFFE_ID: Final = re.compile(r"spiffe://[a-z0-9._-]{1,255}(?:/[A-Za-z0-9._-]+)*", re.ASCII)
"""SPIFFE-ID, section 2. Neither part may hold a colon."""


def spelled(subject: str) -> str | None:
    """A text as principals hold it: `spiffe:corp:agent:a` for the SPIFFE ID `spiffe://corp/agent/a`, else as it is.

    None for a text that begins like a SPIFFE ID but is malformed: no two texts make the same principal.
    """
    if not subject.startswith(_SPIFFE):
        return subject
    if not _SPIFFE_ID.fullmatch(subject) or not {".", ".."}.isdisjoint(subject.split("/")):
        return None
    return _SPIFFE + subject.removeprefix(f"{_SPIFFE}//").replace("/", ":")


def why_not_formed(principal: str, settings: IdentitySettings) -> str | None:
    """Why no form may make this text a principal, as the end of a sentence; None if one may.

    SECURITY: an issuer can name its subjects as it likes, and must not give one the name of another caller.
    """
    if not _PRINCIPAL.fullmatch(principal) or _OURS.fullmatch(principal):
        return "makes no principal"
    if principal in settings.named_principals:
        return "makes a principal that the configuration gives to others"
    return None
