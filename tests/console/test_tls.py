"""A console that serves TLS itself, and command lines that would leave this machine without it."""

from pathlib import Path

import httpx
import pytest

from tests.support.certificates import made_certificate
from tests.support.console_process import console, refused
from tests.support.ports import free_port
from tests.support.scripted_gateway import scripted_gateway

STATUS = "/v1/admin/status"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return made_certificate(tmp_path, "127.0.0.1")


def test_over_tls_it_answers_its_own_https_origin_alone(tmp_path: Path, certificate: Path) -> None:
    with scripted_gateway({f"GET {STATUS}": (200, {})}) as script, console(
        tmp_path, "--gateway", script.url, certificate=certificate
    ) as one:  # fmt: skip
        assert one.origin.startswith("https://127.0.0.1:")
        assert one.ask("GET", "/").status_code == 200
        assert one.ask("GET", STATUS, Origin=one.origin, Sec_Fetch_Site="same-origin").status_code == 200
        assert one.ask("GET", STATUS, Origin=one.origin.replace("https", "http")).status_code == 403
        assert one.ask("GET", STATUS, Sec_Fetch_Site="cross-site").status_code == 403
        assert one.http.get("/", headers={"Host": "evil.example"}).status_code == 403
        with pytest.raises(httpx.TransportError):
            httpx.get(one.origin.replace("https", "http"))
        assert len(script.requests) == 1


def test_with_tls_it_may_be_reached_from_other_machines_under_one_name(tmp_path: Path, certificate: Path) -> None:
    port = free_port()
    origin = f"https://127.0.0.1:{port}"
    more = ("--gateway", "http://127.0.0.1:1", "--origin", origin)
    with console(tmp_path, *more, listen=f"0.0.0.0:{port}", certificate=certificate) as one:
        assert one.origin == origin
        assert one.ask("GET", "/").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--listen", "0.0.0.0:0"), 2, "need TLS: --tls-certificate and --tls-key"),
        (("--tls-certificate", "c.pem"), 2, "come together"),
        (("--tls-key", "k.pem"), 2, "come together"),
        (("--tls-certificate", "c.pem", "--tls-key", "k.pem", "--listen", "0.0.0.0:0"), 2, "add --origin"),
        (("--tls-certificate", "c.pem", "--tls-key", "k.pem", "--listen", "[::]:0"), 2, "add --origin"),
        (("--tls-certificate", "c.pem", "--tls-key", "k.pem", "--origin", "http://a.example"), 2, "https URL"),
        (("--tls-certificate", "c.pem", "--tls-key", "k.pem", "--listen", "unix:c.sock"), 2, "reverse proxy's URL"),
        (("--tls-certificate", "c.pem", "--tls-key", "k.pem", "--listen", "127.0.0.1:0"), 78, "No such file"),
    ],
)
def test_a_command_line_that_serves_no_tls_where_it_should_is_refused(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    done, sentence = refused("--gateway", "http://127.0.0.1:1", *arguments)
    assert (done, said in sentence) == (code, True), sentence
