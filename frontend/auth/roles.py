"""Sets of operators' roles, one of which a request needs. Routes name them (frontend/api/routes.py)."""

from ipc.configuration.roles import ADMINISTER_ROLE, APPROVE_ROLE, READ_ROLE

APPROVERS = frozenset({APPROVE_ROLE})
READERS = frozenset({READ_ROLE})
ADMINISTRATORS = frozenset({ADMINISTER_ROLE})
ANY_ROLE = APPROVERS | READERS | ADMINISTRATORS
