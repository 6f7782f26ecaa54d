"""Addresses of a PostgreSQL."""

import pytest

from ipc.backends.postgres_address import PostgresAddress, parse_postgres_url


@pytest.mark.parametrize(("text", "address", "is_elsewhere"), [
    ("postgresql://db.example/ledger", PostgresAddress("db.example", 5432, None, None, "ledger"), True),
    ("postgres://ann@10.0.0.1:6000/a%20b", PostgresAddress("10.0.0.1", 6000, None, "ann", "a b"), True),
    ("postgresql://127.0.0.1/ledger", PostgresAddress("127.0.0.1", 5432, None, None, "ledger"), False),
    ("postgresql://[::1]:5433/ledger", PostgresAddress("::1", 5433, None, None, "ledger"), False),
    ("postgresql://localhost/ledger", PostgresAddress("localhost", 5432, None, None, "ledger"), False),
    ("postgresql:///ledger?host=/run/pg/", PostgresAddress(None, 5432, "/run/pg", None, "ledger"), False),
    ("postgresql://ann@/l?host=/run/pg&port=5433", PostgresAddress(None, 5433, "/run/pg", "ann", "l"), False),
])  # fmt: skip
def test_an_address_is_a_host_or_the_folder_of_a_socket(
    text: str, address: PostgresAddress, is_elsewhere: bool
) -> None:
    assert parse_postgres_url(text) == address
    assert address.is_elsewhere is is_elsewhere


def test_the_socket_has_the_port_in_its_name() -> None:
    assert parse_postgres_url("postgresql:///l?host=/run/pg").socket == "/run/pg/.s.PGSQL.5432"
    assert parse_postgres_url("postgresql://h/l").socket is None


@pytest.mark.parametrize(("text", "why"), [
    ("mysql://h/d", "must be postgresql://"), ("postgresql://h", "must be"), ("postgresql://h/", "must be"),
    ("postgresql://h/a/b", "must be"), ("postgresql://h:x/d", "must be"), ("postgresql://h:99999/d", "must be"),
    ("postgresql://h/d?sslmode=disable", "must be"), ("postgresql:///d", "must be"),
    ("postgresql:///d?host=pg", "must be"),
    ("postgresql:///d?host=/a,/b", "must be"), ("postgresql:///d?host=/a&host=/b", "must be"),
    ("postgresql://h/d#f", "must be"),
    ("postgresql:///d?host=/a&port=0", "invalid port"), ("postgresql://h/d%00", "must be"),
    ("postgresql://[/d", "must be"),
    ("postgresql://u:secret@h/d", "holds a password"), ("postgresql:///d?host=/a&password=secret", "holds a password"),
])  # fmt: skip
def test_anything_else_is_refused_with_a_sentence_that_repeats_nothing(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_postgres_url(text)
    assert "secret" not in str(refused.value)
