"""Readers beside a writer."""

import math
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from frontend.stores.database import Database, DatabaseGone
from frontend.stores.readers import MAX_READERS, Readers
from tests.frontend.stores.children import table

FOR_EVER = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
async def readers(tmp_path: Path) -> AsyncIterator[Readers]:
    database = Database(tmp_path / "db", table)
    database.open()
    with database.unit() as connection:
        connection.execute("INSERT INTO things VALUES ('a', NULL)")
    found = Readers(database.path)
    yield found
    found.close()
    database.close()


def first_name(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT name FROM things").fetchone()[0])


async def test_a_question_is_answered_in_another_thread(readers: Readers) -> None:
    assert await readers.ask(first_name) == "a"
    assert await readers.ask(lambda _: threading.get_ident()) != threading.get_ident()
    assert await readers.ask(first_name, seconds=math.inf) == "a"


async def test_a_question_cannot_write(readers: Readers) -> None:
    with pytest.raises(DatabaseGone, match="readonly"):
        await readers.ask(lambda connection: connection.execute("DELETE FROM things"))
    assert await readers.ask(first_name) == "a"


async def test_a_question_past_its_deadline_is_taken_back(readers: Readers) -> None:
    began, ended = threading.Event(), threading.Event()

    def endless(connection: sqlite3.Connection) -> None:
        began.set()
        try:
            connection.execute(FOR_EVER).fetchone()
        finally:
            ended.set()

    while not began.is_set():  # or time was over before it had a thread
        with pytest.raises(DatabaseGone, match=r"no answer within 0\.05 s"):
            await readers.ask(endless, seconds=0.05)
    assert await trio.to_thread.run_sync(ended.wait, 60)
    assert await readers.ask(first_name) == "a"


async def test_a_question_that_nobody_waits_for_any_more_ends(readers: Readers) -> None:
    began, ended = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def endless(connection: sqlite3.Connection) -> None:
        token.run_sync_soon(began.set)
        try:
            while True:
                connection.execute("SELECT count(*) FROM things, things, things").fetchone()
                connection.execute(FOR_EVER).fetchone()
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: readers.ask(endless, seconds=math.inf))
        await began.wait()
        nursery.cancel_scope.cancel()
    assert await trio.to_thread.run_sync(ended.wait, 60)


async def test_more_questions_than_threads_wait_for_each_other(readers: Readers) -> None:
    answers = []

    async def ask() -> None:
        answers.append(await readers.ask(first_name))

    async with trio.open_nursery() as nursery:
        for _ in range(MAX_READERS * 5):
            nursery.start_soon(ask)
    assert answers == ["a"] * MAX_READERS * 5


async def test_an_error_of_the_question_itself_is_its_own(readers: Readers) -> None:
    with pytest.raises(ZeroDivisionError):
        await readers.ask(lambda _: 1 // 0)
    assert await readers.ask(first_name) == "a"
