"""Addresses of a Redis: what they say, and what is refused without being repeated."""

import pytest

from ipc.redis_address import RedisAddress, parse_redis_url


@pytest.mark.parametrize(("text", "address", "shown"), [
    ("redis://h", RedisAddress("h", 6379, None, None, 0, False), "h:6379"),
    ("redis://gate@h:1/3", RedisAddress("h", 1, None, "gate", 3, False), "h:1"),
    ("rediss://[::1]:7", RedisAddress("::1", 7, None, None, 0, True), "::1:7"),
    ("unix:///run/r.sock", RedisAddress(None, 0, "/run/r.sock", None, 0, False), "unix:///run/r.sock"),
    ("unix://gate@/r%20s.sock?db=2", RedisAddress(None, 0, "/r s.sock", "gate", 2, False), "unix:///r s.sock"),
])  # fmt: skip
def test_an_address_says_where_and_as_whom(text: str, address: RedisAddress, shown: str) -> None:
    assert parse_redis_url(text) == address
    assert address.shown == shown


@pytest.mark.parametrize(("text", "said"), [
    ("http://h", "must be redis://"), ("redis://", "must be redis://"), ("redis://h?db=1", "must be redis://"),
    ("redis://h#x", "must be redis://"), ("unix://run/r.sock", "must be redis://"), ("unix:///r?x=1", "must be redis://"),
    ("redis://h/16", "0 to 15"), ("redis://h/x", "0 to 15"), ("redis://h:99999", "a port that is none"),
    ("redis://u:hidden@h", "redis_password_file"), ("redis+sentinel://h/m", "Sentinel"),
])  # fmt: skip
def test_what_is_no_address_is_refused_with_a_mend_and_not_repeated(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        parse_redis_url(text)
    assert "hidden" not in str(refused.value)
