"""The table of codes: what an error answers, and what it never tells."""

import re
from pathlib import Path

import pytest
import trio

from frontend.errors import STATUS, GateError, errors_as

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("code", sorted(STATUS))
def test_an_answer_of_ours_carries_the_code_alone_and_one_of_theirs_its_details(code: str) -> None:
    error = GateError(code, cause="/var/lib/gateway is full", reason="because")
    body = error.body()
    assert body["error"] == code
    assert "gateway is full" not in str(body)
    assert ("reason" in body) == (error.status < 500)


@pytest.mark.parametrize("code", sorted(code for code, status in STATUS.items() if status == 401))
def test_every_401_says_how_to_authenticate(code: str) -> None:
    assert ("WWW-Authenticate", "DPoP") in GateError(code).headers()


@pytest.mark.parametrize("code", sorted(code for code, status in STATUS.items() if status == 429))
def test_every_429_says_when_to_come_back(code: str) -> None:
    assert dict(GateError(code).headers())["Retry-After"] == "1"
    assert dict(GateError(code, retry_after=17).headers())["Retry-After"] == "17"
    assert dict(GateError(code, retry_after=0).headers())["Retry-After"] == "1", "never at once"


def test_an_unknown_code_is_a_mistake_of_the_program() -> None:
    with pytest.raises(KeyError):
        GateError("no_such_code")


def test_every_code_is_explained_to_agents_and_no_other() -> None:
    explained = set(re.findall(r"`([a-z_]+)`", "".join(_cells((ROOT / "docs" / "errors.md").read_text()))))
    assert explained == set(STATUS)


def _cells(text: str) -> list[str]:
    return [line.split("|")[2] for line in text.splitlines() if re.match(r"\| \d{3} ", line)]


def test_an_error_that_is_named_leaves_as_the_code_with_its_text_for_the_log_alone() -> None:
    with pytest.raises(GateError) as refusal, errors_as("overloaded", LookupError, OSError):
        raise KeyError("no worker came free")
    error = refusal.value
    assert (error.code, error.cause, error.body()) == ("overloaded", "'no worker came free'", {"error": "overloaded"})
    assert error.__suppress_context__, "a traceback shows one error, not two"


def test_an_error_that_is_not_named_passes_as_it_is_and_so_does_what_went_well() -> None:
    with errors_as("overloaded", OSError):
        pass
    with pytest.raises(ValueError, match="a fault of ours"), errors_as("overloaded", OSError):
        raise ValueError("a fault of ours")


async def test_a_task_that_is_cancelled_stays_cancelled_whatever_errors_are_named() -> None:
    with trio.CancelScope() as scope, errors_as("overloaded", Exception):
        scope.cancel()
        await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
