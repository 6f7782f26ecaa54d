"""Every row of the contract, table by table. `TABLES` is all of them, in the contract's order."""

from tests.conformance.contract import (
    authentication,
    endpoints,
    errors,
    events,
    limits,
    operations,
    resources,
    service,
    states,
)
from tests.conformance.contract.table import Table

TABLES: tuple[Table, ...] = (
    *service.TABLES, *resources.TABLES, *states.TABLES, *endpoints.TABLES, *operations.TABLES,
    *authentication.TABLES, *events.TABLES, *errors.TABLES, *limits.TABLES,
)  # fmt: skip
