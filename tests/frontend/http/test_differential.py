"""Heads against h11: what we accept it accepts and reads the same way, and what it refuses we refuse.

The oracle is h11 with the refusals around it that h11 leaves to its caller, so the comparison holds in both directions:
ours is neither laxer nor, without a rule that stands here, stricter.
"""

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.http.heads import MAX_HEAD_BYTES, MAX_HEADERS, RequestHead, parse_head
from tests.frontend.http.test_smuggling import REFUSED, SERVED, head
from tests.support.properties import MANY

Reading = tuple[str, str, list[tuple[str, str]]]
"""Method, target and headers; names, and the one transfer coding there is, in lower case."""

ORDINARY = {0x09, *range(0x20, 0x7F), *range(0x80, 0x100)}


def read_by_h11(data: bytes) -> Reading | None:
    """h11's own reading of a head, or None if it refuses the head or finds it incomplete."""
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    parser.receive_data(data)
    try:
        event = parser.next_event()
    except h11.RemoteProtocolError:
        return None
    if type(event) is not h11.Request or parser.trailing_data[0]:
        return None
    headers = [(name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers]
    return event.method.decode("ascii"), event.target.decode("ascii"), headers


def is_beyond_h11(data: bytes, reading: Reading) -> bool:
    """True if h11 accepts a head that two servers could read differently, or that this server does not serve."""
    method, target, headers = reading
    fields = dict(headers)
    first, *lines = data.split(b"\r\n")[:-2]
    lengths = [line for line in lines if line.lower().startswith(b"content-length:")]
    version = first[-3:]
    form = target.partition("://")
    is_absolute = form[0].lower() in ("http", "https") and form[1] == "://"
    authority = form[2].split("/")[0].split("?")[0]
    return (
        set(data.replace(b"\r\n", b"")) - ORDINARY != set()
        or len(lines) != len(headers)  # a folded line, or equal lengths that h11 merges
        or any(b"," in line for line in lengths)
        or version not in (b"1.0", b"1.1")
        or method == "CONNECT"
        or ("transfer-encoding" in fields and (bool(lengths) or version == b"1.0"))
        or any(character in ' "#/<>?@\\^`{|}\t' or character > "~" for character in fields.get("host", ""))
        or "#" in target
        or not (target.startswith("/") or (is_absolute and authority and "@" not in authority))
    )


def path_and_query(target: str) -> tuple[str, str]:
    if not target.startswith("/"):
        rest = target.split("://", 1)[1]
        cut = min(at for at in (rest.find("/"), rest.find("?"), len(rest)) if at >= 0)
        target = rest[cut:] if rest[cut : cut + 1] == "/" else "/" + rest[cut:]
    path, _, query = target.partition("?")
    return path, query


def ours(data: bytes) -> RequestHead | None:
    try:
        return parse_head(data)
    except GateError:
        return None


def compare(data: bytes) -> None:
    parsed, reading = ours(data), read_by_h11(data)
    if parsed is None:
        assert reading is None or data.count(b"\r\n") > MAX_HEADERS + 2 or is_beyond_h11(data, reading)
        return
    assert reading is not None, "h11 refuses it"
    assert not is_beyond_h11(data, reading)
    method, target, headers = reading
    assert parsed.method == method
    assert (parsed.path, parsed.query) == path_and_query(target)
    coded = [(name, value.lower() if name == "transfer-encoding" else value) for name, value in parsed.headers]
    assert coded == headers
    fields = dict(headers)
    assert parsed.is_chunked == ("transfer-encoding" in fields)
    assert parsed.length == int(fields.get("content-length", "0"))


WHOLE = [data[: data.index(b"\r\n\r\n") + 4] for data in (*REFUSED.values(), *(pair[0] for pair in SERVED.values()))]
"""The heads of the smuggling table, those that must be served included."""
ORDINARY_HEADS = [
    head(b"GET / HTTP/1.1", b"Host: x"),
    head(
        b"POST /v1/actions/a/execute?x=1 HTTP/1.1", b"Host: 127.0.0.1:3000", b"Accept: */*", b"Connection: keep-alive",
        b"Authorization: DPoP e30.e30.AA", b"DPoP: e30.e30.AA", b"Content-Type: application/json", b"Content-Length: 7",
    ),
    head(b"POST /a HTTP/1.1", b"host:\t[::1]:80 ", b"TRANSFER-Encoding: Chunked", b"Expect: 100-continue", b"Empty:"),
    head(b"GET http://h/a?b HTTP/1.0", b"X: \xe9 \x80", b"X: y", b"Connection: close"),
]  # fmt: skip
PIECES = [
    b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\n", b"\r\n ", b"\r\n\t", b" ", b"\t", b":", b" :", b",", b";", b"#", b"?",
    b"@", b"/", b"\\", b"\0", b"\x0b", b"\x0c", b"\x1c", b"\x7f", b"\x80", b"\x85", b"\xa0", b"\xff", b"\xb2", b"0",
    b"+1", b"1_0", b"0x1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"CONNECT", b"*", b"http://",
    b"https://h", b"Host: x\r\n", b"host:\r\n", b"Content-Length: 5\r\n", b"Content-Length: 5, 5\r\n",
    b"content-length:6\r\n", b"Transfer-Encoding: chunked\r\n", b"transfer-encoding:identity\r\n", b"chunked", b"gzip",
    b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"Content-Length", b"Transfer-Encoding", b"X: y\r\n z\r\n",
    b"9" * 20, b"9" * 21,
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A head of the table with bytes put in, cut, doubled or moved; it ends as a head does."""
    data = draw(st.sampled_from([*WHOLE, *ORDINARY_HEADS, *ORDINARY_HEADS]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.sampled_from([0, 0, 1, 2, 5]))
        new = draw(st.sampled_from(PIECES) | st.binary(max_size=2) | st.just(data[at : at + 12]))
        data = data[:at] + new + data[at + cut :]
    return first_head(data)


def first_head(data: bytes) -> bytes:
    """The bytes that the connection passes on: up to the first empty line."""
    return (data + b"\r\n\r\n")[: (data + b"\r\n\r\n").index(b"\r\n\r\n") + 4]


TOKENS = st.sampled_from(
    [b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Expect", b"X", b"x", b"", b"!#$%&'*+-.^_`|~",
     b"X ", b" X", b"X\t", b"X(", b"\xe9"]
)  # fmt: skip
VALUES = st.lists(
    st.sampled_from(
        [b"", b" ", b"\t", b"x", b"x:80", b"5", b"0", b"chunked", b"Chunked", b",", b"close", b"100-continue", b"\xe9",
         b"\xa0", b"\x85", b"\x1f", b"\x7f", b"/", b'"']
    ), max_size=4,
).map(b"".join)  # fmt: skip
LINES = st.tuples(TOKENS, st.sampled_from([b":", b": ", b":\t ", b" :", b""]), VALUES).map(b"".join)
STARTS = st.tuples(
    st.sampled_from([b"GET", b"POST", b"HEAD", b"OPTIONS", b"CONNECT", b"a", b"G[T", b"", b"\xe9"]),
    st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b""]),
    st.sampled_from([b"/", b"/a%00?b", b"*", b"http://h/a", b"http://u@h/", b"HTTPS://h?x", b"http:///a", b"h:80",
                     b"//h/a", b"/a#b", b"ftp://h/", b"http://?a", b"/\xe9", b"/ a", b""]),
    st.sampled_from([b" ", b" ", b" ", b"  ", b""]),
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 ", b""]),
).map(b"".join)  # fmt: skip


@MANY
@given(mutated())
def test_a_mutated_head_is_read_as_h11_reads_it_or_refused(data: bytes) -> None:
    compare(data)


@MANY
@given(STARTS | st.just(b"POST / HTTP/1.1"), st.lists(LINES | st.just(b"Host: x"), max_size=5))
@example(b"GET / HTTP/1.1", [b"Host: x", b" X: y"])
@example(b"GET / HTTP/1.1", [b"Host: x", b"junk\nX: y"])
@example(b"GET / HTTP/1.1", [b"Host: x", b"junk\rX: y"])
@example(b"GET / HTTP/1.1", [b"Host: x", b"X: y"] * 51)
def test_a_head_put_together_from_parts_is_read_as_h11_reads_it_or_refused(start: bytes, lines: list[bytes]) -> None:
    compare(first_head(head(start, *lines)))


@MANY
@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_read_as_h11_reads_them_or_refused(data: bytes, with_start: bool) -> None:
    compare(first_head((b"GET / HTTP/1.1\r\nHost: x\r\n" if with_start else b"") + data))


@pytest.mark.parametrize("data", [*WHOLE, *ORDINARY_HEADS], ids=lambda data: data.decode("latin-1")[:40])
def test_every_head_of_the_smuggling_table_is_read_as_h11_reads_it_or_refused(data: bytes) -> None:
    compare(data)


SHAPES = [
    b"G%bT / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /%bHTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.%b\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1%bHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n%bHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHo%bst: x\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost%b: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost:%bx\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x%b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r%b\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nA: b%bc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nA:%b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %b5\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5%b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: %bchunked\r\n\r\n",
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: repr(shape)[2:40])
def test_every_byte_in_every_part_of_a_head_is_read_as_h11_reads_it_or_refused(shape: bytes) -> None:
    for byte in range(256):
        compare(first_head(shape % bytes([byte])))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nfoo",
        b"GET / HTTP/1.1\r\nHost: x\r\nfoo",
        b"GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n",
        b"GET / HTTP/1.1\r\n\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\r\n\r\n",
        b"",
    ],
)
def test_bytes_that_do_not_end_with_one_empty_line_are_no_head(data: bytes) -> None:
    assert ours(data) is None
