"""Roles of operators: the kinds of requests that a credential is good for (docs/configuration.md)."""

from typing import Final

APPROVE_ROLE: Final = "approve"
READ_ROLE: Final = "read"
ADMINISTER_ROLE: Final = "administer"
OPERATOR_ROLES: Final = (APPROVE_ROLE, READ_ROLE, ADMINISTER_ROLE)
