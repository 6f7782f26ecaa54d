"""`[[egress.networks]]` in the configuration."""

from pathlib import Path

import pytest

from ipc.configuration.networks import ClientCertificate, NetworkSettings
from supervisor.settings.config import Loaded
from supervisor.settings.sections.networks import MAX_NETWORKS, MAX_RULES
from tests.supervisor.settings.parsed import FOLDER, checked, with_rows
from tests.support.certificates import made_certificate

NAME, DOMAINS, RANGES = 'name = "billing"', 'domains = ["billing.corp.example"]', 'ranges = ["10.20.0.0/16"]'


def loaded(*tables: str, folder: Path = FOLDER) -> Loaded:
    return checked(with_rows("egress.networks", tables), folder)


def said_of(*lines: str, folder: Path = FOLDER) -> list[str]:
    return [str(problem) for problem in loaded("\n".join(lines), folder=folder).problems]


def test_a_network_needs_a_name_domains_and_ranges_and_has_the_documented_defaults() -> None:
    settings = loaded("\n".join([NAME, DOMAINS, RANGES])).settings
    assert settings is not None
    assert settings.egress.networks == (NetworkSettings("billing", ("billing.corp.example",), ("10.20.0.0/16",)),)
    problems = loaded("ports = [1]").problems
    assert [str(problem).split(": is missing. ")[0] for problem in problems] == [
        f"g.toml:3  egress.networks[0].{name}" for name in ("name", "domains", "ranges")
    ]


def test_everything_else_may_be_said(tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path)
    (tmp_path / "key.pem").chmod(0o600)
    settings = loaded(
        "\n".join(
            [
                NAME, 'domains = ["a.corp.example", "*.svc.cluster.local"]', 'ranges = ["10.0.0.0/8", "FD00:20::/64"]',
                "ports = [443, 8443]", f'ca_file = "{certificate.name}"', "unsafe_plain_secrets = true",
                f'client_certificate = {{certificate_file = "{certificate.name}", key_file = "key.pem"}}',
            ]
        ),
        "\n".join(['name = "here"', DOMAINS, 'ranges = ["127.0.0.0/8", "::1/128"]', "ports = [9000]"]),
        folder=tmp_path,
    ).settings  # fmt: skip
    assert settings is not None
    assert settings.egress.networks[0] == NetworkSettings(
        "billing", ("a.corp.example", "*.svc.cluster.local"), ("10.0.0.0/8", "fd00:20::/64"), (443, 8443),
        str(certificate), ClientCertificate(str(certificate), str(tmp_path / "key.pem")), True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([NAME, DOMAINS, 'ranges = ["0.0.0.0/0"]'], "0.0.0.0/0 is too wide: a prefix of 8 or more"),
        ([NAME, DOMAINS, 'ranges = ["10.1.0.0/8"]'], "10.1.0.0/8 has bits set behind its prefix"),
        ([NAME, DOMAINS, 'ranges = ["fc00::/7"]'], "fc00::/7 is too wide: a prefix of 32 or more"),
        ([NAME, DOMAINS, 'ranges = ["10.20.0.0"]'], "must be a range of addresses"),
        ([NAME, DOMAINS, 'ranges = ["10.300.0.0/16"]'], "is no range of addresses"),
        ([NAME, DOMAINS, "ranges = [10]"], "must be a range of addresses"),
        ([NAME, DOMAINS, "ranges = []"], "must be an array with at least one item"),
        ([NAME, DOMAINS, 'ranges = ["169.254.169.0/24"]'], "169.254.169.0/24 is a range that no network may hold"),
        ([NAME, DOMAINS, 'ranges = ["fe80::/64"]'], "is a range that no network may hold"),
        ([NAME, DOMAINS, 'ranges = ["0.0.0.0/8"]'], "is a range that no network may hold"),
        ([NAME, DOMAINS, 'ranges = ["100.100.100.200/32"]'], "is a range that no network may hold"),
        ([NAME, DOMAINS, 'ranges = ["::ffff:10.0.0.0/104"]'], "is a range of IPv4 addresses in IPv6 form"),
        ([NAME, DOMAINS, 'ranges = ["64:ff9b::/96"]'], "is a range of IPv4 addresses in IPv6 form"),
        ([NAME, DOMAINS, 'ranges = ["2002:a14::/32"]'], "is a range of IPv4 addresses in IPv6 form"),
        ([NAME, DOMAINS, 'ranges = ["127.0.0.1/32"]'], "ports: is missing, and a range is of this host itself"),
        ([NAME, DOMAINS, 'ranges = ["::1/128"]'], "ports: is missing, and a range is of this host itself"),
        ([NAME, DOMAINS, 'ranges = ["::/32"]'], "ports: is missing, and a range is of this host itself"),
        ([NAME, RANGES, 'domains = ["10.20.4.7"]'], "10.20.4.7 must be a name with a dot, and no address"),
        ([NAME, RANGES, 'domains = ["localhost"]'], "localhost must be a name with a dot"),
        ([NAME, RANGES, 'domains = ["*"]'], "must be a host name in lower case, perhaps after *."),
        ([NAME, RANGES, 'domains = ["*.example"]'], "example must be a name with a dot"),
        ([NAME, RANGES, 'domains = ["A.corp.example"]'], "must be a host name in lower case"),
        ([NAME, DOMAINS, RANGES, "ports = [0]"], "must be 1 or more"),
        ([NAME, DOMAINS, RANGES, "port = 1"], 'unknown key "port" in [egress.networks[0]]. Did you mean ports?'),
        ([NAME, DOMAINS, RANGES, 'ca_file = "none.pem"'], "none.pem can't be read as certificates in PEM"),
        ([NAME, DOMAINS, RANGES, "client_certificate = {}"], "client_certificate.key_file: is missing"),
        ([NAME, DOMAINS, RANGES, 'client_certificate = {key_file = "none.pem"}'], "none.pem: cannot read it"),
        ([NAME, DOMAINS, RANGES, f"ports = {[*range(1, MAX_RULES + 2)]}"], "257 of them, and 256 are the most"),
    ],
)  # fmt: skip
def test_a_table_that_will_not_do_is_refused(lines: list[str], said: str, tmp_path: Path) -> None:
    assert [problem for problem in said_of(*lines, folder=tmp_path) if said in problem]


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    made_certificate(tmp_path)
    (tmp_path / "key.pem").chmod(0o644)
    pair = 'client_certificate = {certificate_file = "certificate.pem", key_file = "key.pem"}'
    (problem,) = said_of(NAME, DOMAINS, RANGES, pair, folder=tmp_path)
    assert "mode 0644 lets others in. Use chmod 0600." in problem


def test_every_problem_of_every_network_is_told_at_once() -> None:
    problems = loaded(
        "\n".join([NAME, DOMAINS, 'ranges = ["10.0.0.0/4"]', 'ca_file = "/none"']),
        "\n".join([NAME, 'domains = ["x"]', 'ranges = ["127.0.0.1/32"]']),
    ).problems
    paths = sorted(str(problem).split(":")[1].split()[1] for problem in problems)
    assert paths == [
        "egress.networks[0].ca_file", "egress.networks[0].ranges", "egress.networks[1].domains",
        "egress.networks[1].name", "egress.networks[1].ports",
    ]  # fmt: skip


def test_networks_are_bounded() -> None:
    tables = ["\n".join([f'name = "n{number}"', DOMAINS, RANGES]) for number in range(MAX_NETWORKS + 1)]
    (problem,) = loaded(*tables).problems
    assert f"egress.networks: {MAX_NETWORKS + 1} networks, and {MAX_NETWORKS} are the most" in str(problem)
