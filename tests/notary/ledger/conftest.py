"""The ledger of a notary, in each kind of database."""

import itertools

import msgspec
import pytest

from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running
from tests.notary.samples import hooks
from tests.support.cosigners import CITY, witnessed_by
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

_prefixes = itertools.count()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.large)])
def kept(request: pytest.FixtureRequest, start_notary: StartNotary) -> Running:
    """A notary with two endpoints and a witness."""
    more: dict[str, object] = {"limits": UNDISTURBED}
    if request.param == "postgres":
        request.getfixturevalue("patient_backends")
        more["is_patient"] = True
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        redis: RedisServer = request.getfixturevalue("redis_server")
        more["ledger"] = postgres.settings(request.getfixturevalue("database"))
        more["store"] = msgspec.structs.replace(redis.settings, redis_prefix=f"ledger-{next(_prefixes)}")
    return start_notary(webhooks=hooks("chat", "pager"), evidence=witnessed_by(CITY), **more)
