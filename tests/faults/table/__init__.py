"""All dependencies, in the order in which they are shown."""

from tests.faults.table.collector import COLLECTOR
from tests.faults.table.edges import FILE, PROXY, SOPS, WEBHOOKS
from tests.faults.table.opa import OPA
from tests.faults.table.postgres import POSTGRES
from tests.faults.table.redis import REDIS
from tests.faults.table.sqlite import SQLITE
from tests.faults.table.token_server import TOKEN_SERVER

TABLES = (SQLITE, REDIS, POSTGRES, OPA, PROXY, FILE, SOPS, TOKEN_SERVER, WEBHOOKS, COLLECTOR)
