"""The engine over a real OPA whose rules allow what its data does not forbid: lost data must never count as none."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.lowlevel
from msgspec import UNSET
from msgspec.structs import replace

from frontend.errors import GateError
from frontend.policy.engine import PolicySources, PolicyUnreached
from frontend.policy.opa.opening import open_opa
from frontend.policy.question import BudgetUnread
from ipc.process.private_files import PrivateFileError
from ipc.settings import Settings
from tests.support.opa import Opa, opa
from tests.support.opa_engines import opa_engine
from tests.support.patience import PATIENT
from tests.support.policy import document, question
from tests.support.worker_desk import until

RULES = f"""package gateway

import rego.v1

decision := {document(allow="false")} if data.locked

else := {document()}
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    folder: Path = tmp_path_factory.mktemp("opa")
    (folder / "open.rego").write_text(RULES)
    with opa(folder, (str(folder / "open.rego"),)) as running:
        yield running


def policy(data: str, origin: str = "mine") -> PolicySources:
    return PolicySources({}, data, "1", origin)


LOCKED = policy('{"policy_version": "1", "locked": true}')
OPEN = policy('{"policy_version": "1", "locked": false}', "newer")


async def test_nothing_is_allowed_while_the_data_is_lost(engine: Opa, tmp_path: Path) -> None:
    async with opa_engine(engine, tmp_path) as one:
        await one.load(LOCKED)
        assert not (await one.decide(question())).allow
        codes: set[str] = set()
        for _ in range(2):
            await trio.to_thread.run_sync(engine.kill)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, engine.start)
                answers = 0
                while answers < 3:
                    try:
                        assert not (await one.decide(question())).allow
                        answers += 1
                    except GateError as error:
                        codes.add(error.code)
                        await trio.lowlevel.checkpoint()
        assert codes <= {"policy_engine_unavailable", "policy_engine_timeout"}
        assert engine.data("locked") is True


async def test_an_answer_over_a_new_connection_counts_only_where_the_data_is_there(
    engine: Opa, tmp_path: Path
) -> None:  # fmt: skip
    """No look in rounds comes in between: it is the question that finds another OPA behind a new connection."""
    seldom = replace(PATIENT.policy, opa=replace(PATIENT.policy.opa, round_seconds=3600.0))
    async with opa_engine(engine, tmp_path, deadlines=seldom) as one:
        await one.load(LOCKED)
        await one.decide(question())
        await until(lambda: one._rounds_to_probe > 0)  # the look that follows a load is over
        await trio.to_thread.run_sync(engine.kill)
        await trio.to_thread.run_sync(engine.start)
        assert not (await one.decide(question())).allow


async def test_a_question_without_the_budget_is_not_decided_since_the_rules_of_an_opa_may_read_it(
    engine: Opa, tmp_path: Path
) -> None:
    async with opa_engine(engine, tmp_path) as one:
        await one.load(OPEN)
        with pytest.raises(BudgetUnread):
            await one.decide(question(calls_remaining=UNSET))
        assert (await one.decide(question())).allow


async def test_a_front_does_not_push_what_another_has_replaced(engine: Opa, tmp_path: Path) -> None:
    agreed = ["mine"]
    async with (
        opa_engine(engine, tmp_path, lambda origin: origin in agreed) as slow,
        opa_engine(engine, tmp_path, lambda origin: origin in agreed) as quick,
    ):
        await slow.load(LOCKED)
        await quick.load(LOCKED)

        async def agree() -> None:
            agreed[:] = ["newer"]

        await quick.load(OPEN, agree)
        await slow.load(LOCKED)
        assert engine.data("locked") is False
        assert slow.is_available is False
        await slow.load(OPEN)
        assert slow.is_available is True
        assert (await slow.decide(question())).allow


async def test_what_commit_raises_leaves_everything_as_it_was(engine: Opa, tmp_path: Path) -> None:
    async def refuse() -> None:
        raise GateError("evidence_persistence_failed")

    async with opa_engine(engine, tmp_path) as one:
        await one.load(LOCKED)
        with pytest.raises(GateError, match="evidence_persistence_failed"):
            await one.load(OPEN, refuse)
        assert engine.data("locked") is True
        assert not (await one.decide(question())).allow


async def test_without_an_opa_a_first_front_does_not_begin_and_a_successor_does(engine: Opa, tmp_path: Path) -> None:
    async def agree() -> None:
        pass

    with engine.gone():
        async with opa_engine(engine, tmp_path) as one:
            with pytest.raises(PolicyUnreached):
                await one.load(LOCKED, agree)
        async with opa_engine(engine, tmp_path, is_successor=True) as other:
            await other.load(LOCKED, agree)
            assert other.is_available is False
            with pytest.raises(GateError, match="policy_engine_unavailable"):
                await other.decide(question())


@pytest.mark.parametrize("content", ["", "two words", "é", "a\nb", "x" * 9000])
def test_a_token_that_can_not_be_one_is_refused(tmp_path: Path, content: str) -> None:
    token = tmp_path / "token"
    token.write_text(content)
    token.chmod(0o600)
    settings = Settings(state_dir=str(tmp_path), public_base_url="", opa_url="http://h", opa_token_file=str(token))
    with pytest.raises(PrivateFileError, match="must be one line"):
        open_opa(settings, lambda _: True, lambda: None, PATIENT.policy, PATIENT.files)
