"""Commands that seal a ledger at once: the supervisor gives each of them the notary's answer to its own question."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ipc.settings import PoolSettings, WorkerSettings
from supervisor.life.asking import ask_gateway
from tests.support.supervised import Start, wait_until

NONE = PoolSettings(min_spare=0, max=1)
AT_ONCE = 4
ROUNDS = 10


def test_questions_that_are_answered_at_once_get_an_answer_each(start: Start) -> None:
    gateway = start(workers=WorkerSettings(compute=NONE, http=NONE, fs=NONE), notary={"cuts_at_once": AT_ONCE})
    folder = Path(gateway.settings.state_dir)
    wait_until(lambda: ask_gateway(folder, "seal", sealed="0")["problem"] is None)  # fake fronts do not wait for it
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(1, ROUNDS * AT_ONCE, AT_ONCE):
            asked = range(first, first + AT_ONCE)
            answers = list(pool.map(lambda number: ask_gateway(folder, "seal", sealed=str(number)), asked))
            assert answers == [{"left": number, "problem": None, "is_refused": False} for number in asked]
