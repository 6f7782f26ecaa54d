"""The chunk decoder against tables, against h11 and against any way of cutting the stream."""

from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.http.chunks import MAX_FRAMING_BYTES, MAX_LINE_BYTES, ChunkedBody


def decode(data: bytes, cap: int = 1 << 20) -> tuple[bytes, bytes] | None:
    """Body and what is left over; None when more is needed."""
    buffer = bytearray(data)
    decoder = ChunkedBody(cap)
    return (bytes(decoder.body), bytes(buffer)) if decoder.feed(buffer) else None


@pytest.mark.parametrize(
    ("data", "body", "rest"),
    [
        (b"0\r\n\r\n", b"", b""),
        (b"5\r\nhello\r\n0\r\n\r\nGET /", b"hello", b"GET /"),
        (b"5\r\nhello\r\n006\r\n world\r\n0\r\n\r\n", b"hello world", b""),
        (b"a;name=value\r\n0123456789\r\n0;last\r\n\r\n", b"0123456789", b""),
        (b'A ; q="x y"\r\n\r\n\r\n\r\n\r\n01\r\n0\r\n\r\n', b"\r\n\r\n\r\n\r\n01", b""),
        (b"1\r\nx\r\n0\r\nTrailer: a\r\nX-B:\r\n\r\n!", b"x", b"!"),
    ],
)
def test_bodies_in_chunks_are_put_together(data: bytes, body: bytes, rest: bytes) -> None:
    assert decode(data) == (body, rest)


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n", b"x\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b"1 \r\n", b" 1\r\n", b"1\t\r\n", b"1_0\r\n",
        b"1\n", b"1\nx\n0\n\n", b"123456789\r\n", b"\xb2\r\n", b"5\x00\r\n", b"1;a\x00\r\n", b"1;a\nb\r\n",
        b"1;a\rb\r\n",
        b"1\r\nxx", b"1\r\nx\n", b"1\r\nx\nx", b"1\r\nx0\r\n\r\n", b"0\r\n folded\r\n\r\n", b"0\r\nbad name: x\r\n\r\n",
        b"0\r\nno colon\r\n\r\n", b"0\r\nX: a\n\r\n\r\n", b"0\r\nX: a\rb\r\n\r\n", b"0\r\n\n",
        b"1;" + b"x" * MAX_LINE_BYTES, b"0\r\nX:" + b"x" * MAX_LINE_BYTES,
    ],
)  # fmt: skip
def test_a_body_that_is_not_plainly_chunked_is_refused(data: bytes) -> None:
    # Further bytes must not turn it into a valid body.
    with pytest.raises(GateError, match="bad_request"):
        decode(data + b"\r\n" * 8)


def test_a_chunk_beyond_the_cap_is_refused_by_its_announcement() -> None:
    with pytest.raises(GateError) as caught:
        decode(b"4\r\n0123\r\n7\r\n", cap=10)
    assert caught.value.code == "body_too_large"
    assert decode(b"4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n", cap=10) == (b"0123456789", b"")


def test_a_body_cut_into_crumbs_is_refused_long_before_the_cap() -> None:
    stream = b"1\r\nx\r\n" * (1 << 20)
    buffer = bytearray(stream)
    decoder = ChunkedBody(1 << 20)
    with pytest.raises(GateError):
        decoder.feed(buffer)
    assert len(decoder.body) <= MAX_FRAMING_BYTES


def test_chunks_of_a_sensible_size_are_not_taken_for_crumbs() -> None:
    stream = b"10\r\n0123456789abcdef\r\n" * 4096 + b"0\r\n\r\n"
    assert decode(stream) == (b"0123456789abcdef" * 4096, b"")


chunk_streams = st.builds(
    lambda chunks, rest: b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n" + rest,
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.binary(max_size=8),
)


@given(chunk_streams, st.lists(st.integers(0, 200), max_size=8))
def test_the_result_does_not_depend_on_where_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    expected = decode(stream)
    assert expected is not None
    decoder, buffer = ChunkedBody(1 << 20), bytearray()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    finished = False
    for start, end in pairwise(edges):
        buffer += stream[start:end]
        finished = finished or decoder.feed(buffer)
    assert finished
    assert (bytes(decoder.body), bytes(buffer)) == expected


mutated = st.builds(
    lambda stream, at, cut, new: stream[: at % (len(stream) + 1)] + new + stream[at % (len(stream) + 1) + cut :],
    chunk_streams,
    st.integers(0, 300),
    st.integers(0, 3),
    st.sampled_from(
        [b"", b"\r", b"\n", b"\r\n", b"0", b"0\r\n\r\n", b"f", b";", b" ", b"\t", b":", b"\0", b"x: y\r\n"]
    ),
)


@given(mutated | st.binary(max_size=60))
def test_whatever_is_accepted_h11_reads_the_same_way(stream: bytes) -> None:
    try:
        ours = decode(stream)
    except GateError:
        return
    if ours is None:
        return
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + stream)
    body = b""
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Request | h11.Data)
        body += event.data if isinstance(event, h11.Data) else b""
    assert (body, parser.trailing_data[0]) == ours
