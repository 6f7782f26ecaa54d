"""The bytes of answers, with h11's client half as the judge."""

import h11
import msgspec
import pytest

from frontend.errors import STATUS, GateError
from frontend.http.answers import Answer, encode_answer, error_answer, json_answer


def parsed(data: bytes, method: str = "GET") -> tuple[h11.Response, bytes]:
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(data)
    response = parser.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data)
        body += event.data
    assert parser.trailing_data == (b"", False)
    return response, body


def test_every_code_of_the_table_has_a_json_body_and_its_status() -> None:
    for code, status in STATUS.items():
        response, body = parsed(encode_answer(error_answer(GateError(code))))
        assert response.status_code == status
        assert msgspec.json.decode(body) == {"error": code}
        assert dict(response.headers)[b"content-type"] == b"application/json"


def test_answers_to_head_say_the_length_of_what_they_leave_out() -> None:
    answer = json_answer(200, {"status": "ok"})
    with_body, without = encode_answer(answer), encode_answer(answer, without_body=True)
    assert with_body == without + answer.body
    assert parsed(without, "HEAD")[1] == b""


def test_headers_of_the_answer_and_close_are_sent_and_nothing_may_be_cached() -> None:
    answer = Answer(200, b"# EOF\n", (("Retry-After", "5"),), "application/openmetrics-text; version=1.0.0")
    headers = dict(parsed(encode_answer(answer, close=True))[0].headers)
    assert headers[b"retry-after"] == b"5"
    assert headers[b"content-type"] == b"application/openmetrics-text; version=1.0.0"
    assert headers[b"cache-control"] == b"no-store"
    assert headers[b"connection"] == b"close"
    assert headers[b"date"].endswith(b" GMT")


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\0b", "\x7f", "ü", "a\u2028b"])
def test_a_header_that_could_end_its_line_is_refused(value: str) -> None:
    for answer in (Answer(200, b"", (("X-A", value),)), Answer(200, b"", ((value, "a"),)), Answer(200, b"", (), value)):
        with pytest.raises(ValueError, match="character"):
            encode_answer(answer)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(KeyError):
        encode_answer(Answer(299))
