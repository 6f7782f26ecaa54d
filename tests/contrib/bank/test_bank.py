"""The upstream that `gateway dev` brings: what it pays, what it echoes, and what it never says."""

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contrib.bank.ledger import MOST_KEPT, Bank, BankRequest

ROOT = Path(__file__).resolve().parents[3]
ORDER = b'{"to":"acct-7","amount_cents":25000,"currency":"EUR"}'


def test_a_transfer_is_paid_once_for_each_order_and_kept() -> None:
    bank = Bank()
    first, second = (bank.answer(BankRequest("POST", "/v1/transfers", True, ORDER)) for _ in range(2))
    paid = {"transfer_id": "tr_000001", "state": "paid", "to": "acct-7", "amount_cents": 25000, "currency": "EUR"}
    assert first == (201, paid)
    assert bank.answer(BankRequest("GET", "/v1/transfers?x=1", False, b"")) == (200, {"transfers": [paid, second[1]]})


def test_it_keeps_the_last_transfers_alone() -> None:
    bank = Bank()
    for _ in range(MOST_KEPT + 5):
        bank.answer(BankRequest("POST", "/v1/transfers", True, ORDER))
    kept = bank.answer(BankRequest("GET", "/v1/transfers", False, b""))[1]["transfers"]
    assert [kept[0]["transfer_id"], len(kept)] == ["tr_000006", MOST_KEPT]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"to":"","amount_cents":1,"currency":"EUR"}', b'{"to":"a","amount_cents":0,"currency":"EUR"}',
     b'{"to":"a","amount_cents":true,"currency":"EUR"}', b'{"to":"a","amount_cents":1,"currency":"eur"}', b"[" * 9999],
)  # fmt: skip
def test_what_is_no_order_is_not_paid(body: bytes) -> None:
    bank = Bank()
    assert bank.answer(BankRequest("POST", "/v1/transfers", True, body))[0] == 422
    assert bank.answer(BankRequest("GET", "/v1/transfers", False, b"")) == (200, {"transfers": []})


def test_nothing_is_paid_without_the_gateways_own_token() -> None:
    assert Bank().answer(BankRequest("POST", "/v1/transfers", False, ORDER))[0] == 401


@pytest.fixture
def port() -> Iterator[int]:
    """The process, as `gateway dev` starts it."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        arguments = ["--listen-fd", str(sock.fileno()), "--parent", str(os.getpid())]
        process = subprocess.Popen(
            [sys.executable, "-I", str(ROOT / "launch.py"), "contrib.bank.main", *arguments], pass_fds=(sock.fileno(),)
        )
        try:
            yield sock.getsockname()[1]
        finally:
            process.kill()
            process.wait(60)


def test_it_echoes_what_it_is_sent_and_no_credential(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/x?y=1", b'{"a": 1}', {"Authorization": "Bearer secret-3f1c"})
        answer = connection.getresponse()
        body = answer.read().decode()
        assert (answer.status, '"received": {"a": 1}' in body, '"path": "/x?y=1"' in body) == (201, True, True)
        assert "secret-3f1c" not in body
        connection.request("POST", "/x", b"a", {"Content-Length": "1048577"})
        assert connection.getresponse().status == 413
    finally:
        connection.close()
