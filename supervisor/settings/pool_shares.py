"""Divides the pools of `[workers.*]`, which are for the whole gateway, among its fronts. Pure; "auto" is a number
already.

A worker belongs to one front from its birth on, so each front has a pool of its own: an equal part, rounded down, so
that all together stay within what the configuration allows; but one at least, or a front could serve no call.
"""

from msgspec.structs import replace

from ipc.effects import PROFILES
from ipc.settings import PoolSettings, Settings


def divided(settings: Settings) -> Settings:
    """The same settings with the pools of one front."""
    fronts, workers = settings.front_processes, settings.workers
    parts = {name: _part(getattr(workers, name), fronts) for name in PROFILES}
    return replace(settings, workers=replace(workers, **parts))


def most_workers(most: int, fronts: int) -> int:
    """How many workers of a pool with `max = most` all fronts have together."""
    return _share(most, fronts) * fronts


def _share(most: int, fronts: int) -> int:
    return max(1, most // fronts)


def _part(pool: PoolSettings, fronts: int) -> PoolSettings:
    most = _share(pool.most, fronts)
    spare = min(-(-pool.min_spare // fronts), most)
    workers = None if pool.workers is None else max(_share(pool.workers, fronts), spare)
    return PoolSettings(min_spare=spare, max=most, workers=workers)
