"""Checks whether a Redis is fit to hold proofs, budgets, approvals and the epoch; some faults lead to a warning only.

Source: docs/operations.md, "Redis". A setting that can't be read counts as a fault outside dev mode.
"""

import time
from typing import Any, Final, NamedTuple

import redis

from ipc.process.clock import STEP_TOLERANCE_SECONDS
from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError
from ipc.settings import Settings
from notary.backends.redis.client import Client, RedisTarget, said_of
from notary.backends.redis.keys import RedisKeys

OLDEST: Final = (6, 2)


class RedisUnfit(Exception):
    """It must not be used. A sentence with its mend."""


class RedisFitness(NamedTuple):
    """Faults in every mode, and faults outside dev mode."""

    wrong: list[str]
    weak: list[str]
    seconds_ahead: float = 0.0
    """So far is this host's clock ahead of the server's, which counts nowhere but is that of all its gateways."""


def connected(settings: Settings, place: RedisTarget) -> Client:
    """A client of a Redis that will do. Raises StoreGone, RedisUnfit."""
    client = Client(place.connect)
    client.open()
    try:
        problems = judge(place, settings)
        refused = problems.wrong or ([] if settings.dev_mode else problems.weak)
        if refused:
            raise RedisUnfit(" ".join(refused))
    except BaseException:
        client.close()
        raise
    for sentence in problems.weak:
        log.warning("the Redis of the store is weak", reason=sentence)
    if abs(problems.seconds_ahead) > STEP_TOLERANCE_SECONDS:
        log.warning("the clocks of this host and of the Redis are apart", seconds_ahead=round(problems.seconds_ahead))
    return client


def problem_of_redis(settings: Settings) -> str | None:
    """Why the configured Redis can't be used, one sentence or more; None where it can, or where none is configured."""
    if settings.store.redis_url is None:
        return None
    try:
        place = RedisTarget(settings.store)
        problems = judge(place, settings)
    except (redis.RedisError, OSError, ValueError, PrivateFileError) as error:
        return unreachable(settings, said_of(error) if isinstance(error, redis.RedisError) else str(error))
    return " ".join(problems.wrong or ([] if settings.dev_mode else problems.weak)) or None


def unreachable(settings: Settings, cause: str) -> str:
    """For people; the address has no password."""
    return f"store.redis_url = {settings.store.redis_url!r}: can't be used: {cause.removesuffix('.')}."


def judge(place: RedisTarget, settings: Settings) -> RedisFitness:
    """Raises redis.RedisError, OSError, KeyFileError."""
    it = redis.Redis(connection_pool=place.pool())
    try:
        info: dict[str, Any] = {**it.info("server"), **it.info("memory"), **it.info("persistence")}
        info |= it.info("replication")
        wrong, weak = list(_wrong(info)), list(_weak(info))
        if not weak:
            weak += _weak_flush(it)
        key = RedisKeys(settings.store.redis_prefix).probe
        if not wrong:
            it.execute_command("SET", key, "1", "PX", "1000")
        return RedisFitness(wrong, weak, _seconds_ahead(info))
    finally:
        it.close()
        it.connection_pool.disconnect()


def _seconds_ahead(info: dict[str, Any]) -> float:
    told = info.get("server_time_usec")
    return 0.0 if told is None else time.time() - int(told) / 1_000_000


def _wrong(info: dict[str, Any]) -> list[str]:
    version = str(info.get("redis_version", ""))
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    wrong = []
    if parts < OLDEST:
        wrong.append(f"Redis {version or 'of no version'} is too old: 6.2 or later is needed.")
    if info.get("role") != "master":
        wrong.append("This Redis is a replica, which takes no writes: name its master.")
    return wrong


def _weak(info: dict[str, Any]) -> list[str]:
    weak = []
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        weak.append(f"Its maxmemory-policy is {policy}, and proofs may be evicted: set noeviction.")
    if not int(info.get("aof_enabled", 0)):
        weak.append("It keeps no append-only file, and forgets used proofs with its process: set appendonly yes.")
    return weak


def _weak_flush(it: "redis.Redis") -> list[str]:
    try:
        flush = it.execute_command("CONFIG", "GET", "appendfsync")
    except redis.ResponseError:
        return ["Whether it flushes its append-only file can't be read: allow its user +config|get."]
    values = list(flush.values()) if isinstance(flush, dict) else list(flush)[1:]
    if values[:1] in (["always"], ["everysec"]):
        return []
    return ["It leaves its append-only file to the system: set appendfsync always, or everysec."]
