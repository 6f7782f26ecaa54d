"""The engine of a front over a real OPA."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from frontend.deadlines import PolicyDeadlines
from frontend.policy.opa.engine import OpaPolicy
from frontend.policy.opa.opening import open_opa
from ipc.settings import Settings
from tests.support.opa import Opa
from tests.support.patience import PATIENT


@asynccontextmanager
async def opa_engine(
    opa: Opa,
    folder: Path,
    is_current: Callable[[str], bool] = lambda _: True,
    *,
    is_successor: bool = False,
    deadlines: PolicyDeadlines = PATIENT.policy,
) -> AsyncIterator[OpaPolicy]:
    """The engine of one front; fronts of one gateway have one folder."""
    settings = Settings(state_dir=str(folder), public_base_url="", opa_url=opa.url)
    Path(settings.fronts_folder).mkdir(exist_ok=True)  # noqa: ASYNC240
    made = open_opa(settings, is_current, lambda: None, deadlines, PATIENT.files, is_successor=is_successor)
    async with trio.open_nursery() as nursery:
        await nursery.start(made.run)
        yield made
        nursery.cancel_scope.cancel()
