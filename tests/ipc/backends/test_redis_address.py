"""Addresses of a Redis: what they say, and what is refused without being repeated."""

import pytest

from ipc.backends.redis_address import RedisAddress, parse_redis_url


@pytest.mark.parametrize(("text", "address", "shown"), [
    ("redis://h", RedisAddress("h", 6379, None, None, 0, False), "h:6379"),
    ("redis://gate@h:1/3", RedisAddress("h", 1, None, "gate", 3, False), "h:1"),
    ("rediss://[::1]:7", RedisAddress("::1", 7, None, None, 0, True), "::1:7"),
    ("unix:///run/r.sock", RedisAddress(None, 0, "/run/r.sock", None, 0, False), "unix:///run/r.sock"),
    ("unix://gate@/r%20s.sock?db=2", RedisAddress(None, 0, "/r s.sock", "gate", 2, False), "unix:///r s.sock"),
    ("redis+sentinel://gate@s1,[::1]:7/main/3", RedisAddress(
        "s1", 26379, None, "gate", 3, False, (("s1", 26379), ("::1", 7)), "main", (6379,)
    ), "s1:26379"),
    ("rediss+sentinel://s1:1/a%20b?ports=2,3", RedisAddress(
        "s1", 1, None, None, 0, True, (("s1", 1),), "a b", (2, 3)
    ), "s1:1"),
])  # fmt: skip
def test_an_address_says_where_and_as_whom(text: str, address: RedisAddress, shown: str) -> None:
    assert parse_redis_url(text) == address
    assert address.shown == shown


@pytest.mark.parametrize(("text", "said"), [
    ("http://h", "must be redis://"), ("redis://", "must be redis://"), ("redis://h?db=1", "must be redis://"),
    ("redis://h#x", "must be redis://"), ("unix://run/r.sock", "must be redis://"), ("unix:///r?x=1", "must be redis://"),
    ("redis://h/16", "0 to 15"), ("redis://h/x", "0 to 15"), ("redis://h:99999", "an invalid port"),
    ("redis://u:hidden@h", "redis_password_file"), ("redis+sentinel://u:hidden@h/m", "redis_password_file"),
    ("redis+sentinel://h", "must be redis://"), ("redis+sentinel://h/", "must be redis://"),
    ("redis+sentinel://h,/m", "must be redis://"), ("redis+sentinel://h/m?port=1", "must be redis://"),
    ("redis+sentinel://h/m?ports=x", "an invalid port"), ("redis+sentinel://h/m?ports=0", "an invalid port"),
    ("redis+sentinel://h:99999/m", "an invalid port"), ("redis+sentinel://h/m/16", "0 to 15"),
    (f"redis+sentinel://{','.join('h' * 10)}/m", "more than 9"),
])  # fmt: skip
def test_a_malformed_address_is_refused_with_a_remedy_and_not_repeated(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        parse_redis_url(text)
    assert "hidden" not in str(refused.value)


def test_an_address_says_which_ports_it_needs() -> None:
    assert parse_redis_url("unix:///r.sock").ports == ()
    assert parse_redis_url("redis://h:7").ports == (7,)
    assert set(parse_redis_url("redis+sentinel://s:1,t:2/m?ports=3,4").ports) == {1, 2, 3, 4}
