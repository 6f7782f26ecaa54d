"""The configuration gives settings or every problem at once, each with its place and its mend."""

from pathlib import Path

import pytest

from ipc.settings import OperatorSettings, PrincipalMapping, Settings
from supervisor.settings.problems import in_order, report
from supervisor.settings.sections.operators import digest_of
from tests.supervisor.settings.parsed import FOLDER, NEEDED, checked

KEY = "key-ada-" + "0a" * 16
JKT = "x" * 42 + "w"


def problems_of(text: str, folder: Path = FOLDER) -> list[str]:
    loaded = checked(text, folder)
    assert (loaded.settings is None) == bool(loaded.problems)
    return [str(problem) for problem in in_order(loaded.problems)]


def settings_of(text: str, folder: Path = FOLDER) -> Settings:
    loaded = checked(text, folder)
    assert loaded.settings is not None, loaded.problems
    return loaded.settings


def test_a_minimal_file_gives_the_defaults() -> None:
    assert settings_of(NEEDED) == Settings(state_dir="/var/lib/gateway", public_base_url="https://gate.example")


def test_every_section_ends_up_where_the_processes_look_for_it() -> None:
    parsed = settings_of(
        NEEDED
        + f'''
manifests_dir = "actions"
listen_http_addr = "localhost:3000"
lease_ttl_seconds = 60
[identity]
provider = "peercred"
[identity.peercred]
allow_unmapped = true
[identity.peercred.principals.1004]
principal = "billing-agent"
owner = "team-billing"
scopes = ["tools:call", "pay:out"]
max_sessions = 4
[[operators]]
name = "ada"
api_key = "{KEY}"
dpop_jkt = "{JKT}"
[egress]
unsafe_resolve = {{"upstream.gateway.test" = "127.0.0.1:9"}}
[limits]
drain_seconds = 5
[workers.http]
max = 9
[secrets]
file = "s.json"
[approvals]
require_signature = true
[compat]
actions_envelope = true
'''
    )
    assert parsed.manifests_dir == "/etc/gateway/actions"
    assert parsed.listen_http_addr == "127.0.0.1:3000"
    assert parsed.lease_ttl_seconds == 60
    assert parsed.identity.allow_unmapped
    mapping = PrincipalMapping(
        principal="billing-agent", scopes=("tools:call", "pay:out"), owner="team-billing", max_sessions=4
    )
    assert parsed.identity.principals == {"1004": mapping}
    assert parsed.operators == (OperatorSettings(name="ada", dpop_jkt=JKT, api_key_sha256=digest_of(KEY)),)
    assert parsed.egress.unsafe_resolve == {"upstream.gateway.test": "127.0.0.1:9"}
    assert parsed.limits.drain_seconds == 5.0
    assert (parsed.workers.http.min_spare, parsed.workers.http.max) == (1, 9)
    assert parsed.secrets.file == "/etc/gateway/s.json"
    assert parsed.approvals.require_signature
    assert parsed.compat.actions_envelope


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    text = (
        NEEDED
        + """lease_ttl_seconds = 0
[egress]
webhook = 1
[limits]
max_in_flight = "many"
drain_second = 3
"""
    )
    assert problems_of(text) == [
        "g.toml:3  lease_ttl_seconds = 0: must be 1 or more. Use 1 to 3600.",
        'g.toml:5  unknown key "webhook" in [egress]. Did you mean [[webhooks]]?',
        'g.toml:7  limits.max_in_flight = "many": must be a whole number or "auto". Use 1 to 100000.',
        'g.toml:8  unknown key "drain_second" in [limits]. Did you mean drain_seconds?',
    ]


def test_the_report_says_how_many_and_that_nothing_was_started() -> None:
    assert report(checked(NEEDED + "a = 1").problems).endswith('unknown key "a".\n1 problem, nothing started.\n')
    assert "2 problems, nothing started." in report(checked("").problems)


def test_of_very_many_problems_a_person_is_told_the_first_hundred_with_a_likely_name_each_and_how_many_there_are() -> (
    None
):
    text = "".join(f"lease_ttl_second_{number} = 1\n" for number in range(150)) + NEEDED
    loaded = checked(text)
    lines = report(loaded.problems).splitlines()
    assert lines[99] == 'g.toml:100  unknown key "lease_ttl_second_99". Did you mean lease_ttl_seconds?'
    assert lines[100:] == ["… and 50 more.", "150 problems, nothing started."]
    assert [bool(one.mend) for one in loaded.problems] == [True] * 100 + [False] * 50


def test_a_setting_is_judged_unless_it_or_anything_around_or_in_it_is_unread() -> None:
    text = NEEDED + 'limits = 1\n[workers.http]\nmax = "x"\nmin_spare = 1\n'
    loaded = checked(text)
    judged = {
        path: loaded.is_judged(*path)
        for path in [
            ("limits",), ("limits", "drain_seconds"), ("workers",), ("workers", "http"), ("workers", "http", "max"),
            ("workers", "http", "min_spare"), ("workers", "fs"), ("state_dir",),
        ]
    }  # fmt: skip
    assert list(judged.values()) == [False, False, False, False, False, True, True, True]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('state_dir = ""', "must be a text of one line, not empty"),
        ("state_dir = 3", "must be a text in quotes"),
        ('public_base_url = "gate.example"', "must be an http or https URL"),
        ('public_base_url = "https://u:p@gate.example"', "neither user, query nor fragment"),
        ('public_base_url = "https://gate.example/?a=1"', "neither user, query nor fragment"),
        ('public_base_url = "https://gate.example:99999"', "is not a URL"),
        ('listen_http_addr = "gate.example:80"', "must be an IP address and a port"),
        ('listen_http_addr = "127.0.0.1:70000"', "must be an IP address and a port"),
        ('listen_http_addr = "::1:80"', "must be an IP address and a port"),
        ('listen_uds_path = "/' + "d" * 120 + '"', "at most 107 bytes"),
        ('unsafe_expose_http = "yes"', "must be true or false"),
        ("front_processes = 65", "must be 64 or less"),
        ('front_processes = "many"', 'must be a whole number or "auto"'),
        ("front_processes = 0", "must be 1 or more"),
        ("lease_ttl_seconds = 3601", "must be 3600 or less"),
        ("lease_ttl_seconds = true", "must be a whole number"),
        (f"limits.drain_seconds = {10**400}", "must be 3600 or less"),
        (f"limits.drain_seconds = -{10**400}", "must be 0.1 or more"),
        ("lease_ttl_seconds = 1.5", "must be a whole number"),
        ('response_schema_enforcement = "off"', 'must be "deny" or "warn"'),
        ('opa_url = "ftp://opa.example"', "must be an http or https URL with a host"),
        ('opa_url = "http://u:p@opa.example"', "neither user, query nor fragment"),
        ('opa_url = "unix://opa.sock"', "must name the socket by its whole path"),
        ('opa_url = "unix:///run/../opa.sock"', "must name the socket by its whole path"),
        ('opa_url = "unix:///run/opa.sock?x"', "neither space, query nor fragment"),
        (f'opa_url = "unix:///{"x" * 107}"', "a socket's path has at most 107 bytes"),
        ('opa_memo = "always"', 'must be "off" or "revision"'),
        ('opa_memo = "revision"', "opa_url: is missing"),
        ('opa_token_file = "token"', "opa_url: is missing"),
        ('egress_proxy_url = "ftp://proxy.example:3128"', "must be an http or https URL"),
        ('egress_proxy_url = "http://proxy.example"', "must name host and port, and nothing else"),
        ('egress_proxy_url = "http://proxy.example:3128/path"', "must name host and port, and nothing else"),
        ('egress_proxy_url = "http://u:p@proxy.example:3128"', "neither user, query nor fragment"),
        ('egress_proxy_url = "http://proxy_1.example:3128"', "must name a host or an address"),
        ('egress.proxy_allowlist_file = "/var/lib/gateway/domains"', "egress_proxy_url: is missing"),
        ('egress.proxy_secret = "way"', "egress_proxy_url: is missing"),
        ('egress.proxy_ca_file = "/etc/ca.pem"', "egress_proxy_url: is missing"),
        ('store.redis_url = "http://h"', "must be redis://"),
        ('store.redis_url = "redis://u:secret@h"', "holds a password. Put it into the file"),
        ('store.redis_url = "redis+sentinel://h"', "must be redis://"),
        ('store.redis_prefix = "a b"', "must be letters, digits"),
        ('ledger.url = "mysql://h/d"', "must be postgresql://"),
        ('ledger.url = "postgresql://u:secret@h/d"', "holds a password. Put it into the file"),
        ('ledger.url = "postgresql://h/d"', "store.redis_url: is missing"),
        ('ledger.ca_file = "/etc/ca.pem"', "ledger.url: is missing"),
        ('ledger.path = "postgresql://h/d"', "names no file"),
        ("limits = 3", "must be a table"),
        ("operators = 3", "must be an array of tables"),
        ("operators = [3]", "must be a table"),
        ("limits.drain_seconds = nan", "must be a number of seconds"),
        ("limits.drain_seconds = inf", "must be a number of seconds"),
        ("limits.drain_seconds = -1", "must be 0.1 or more"),
        ("workers.http.max = 0", "must be 1 or more"),
        ("approvals.keep_days = 0", "must be 1 or more"),
        ("approvals.keep_days = 3651", "must be 3650 or less"),
        ("evidence.keep_days = -1", "must be 0 or more"),
        ("evidence.keep_days = 3651", "must be 3650 or less"),
        ("workers.compute.min_spare = 13", "must not be above workers.compute.max = 12"),
        ("workers.http = {min_spare = 13, max = 12}", "must not be above workers.http.max = 12"),
        ('workers.compute.max = "auto"', "must be a whole number"),
        ("workers.http.max = 1025", "must be 1024 or less"),
        ("front_processes = 4\nworkers.http = {min_spare = 5, max = 7}",
         "must not be above 4: each of 4 fronts has 1 of workers.http.max = 7. Lower it, or use max = 8."),
        ("front_processes = 3\nworkers.fs.min_spare = 13", "must not be above workers.fs.max = 12"),
        ("front_processes = 5\nworkers.fs.min_spare = 11", "must not be above 10: each of 5 fronts has 2"),
        ('identity.provider = "oidc"', 'must be "peercred" or "none"'),
        ('identity.peercred.principals.root.principal = "a"', "is not a user id"),
        ('identity.peercred.principals.01.principal = "a"', "is not a user id"),
        ('identity.peercred.principals.4294967295.principal = "a"', "is not a user id"),
        ('identity.peercred.principals.1 = {principal = "a", scopes = []}', "must be an array with at least one item"),
        ('identity.peercred.principals.1 = {principal = "a", scopes = ["call"]}', "with a colon"),
        ('identity.peercred.principals.1 = {owner = "a"}', "principal: is missing"),
        ('identity.peercred.principals.1 = {principal = "a", max_sessions = -1}', "must be 0 or more"),
        ('identity.peercred.principals = {1 = {principal = "a"}, 2 = {principal = "a", max_sessions = 3}}',
         "2.max_sessions: users 1 and 2 act as the same principal with different limits. Set max_sessions in both"),
        ('identity.peercred.principals = {1 = {principal = "a", max_sessions = "3"}, 2 = {principal = "a"}}',
         "must be a whole number"),
        ('egress.unsafe_resolve = {"a.test" = "b.test:80"}', "must be an IP address and a port"),
        ('egress.unsafe_resolve = {"a.test" = "127.0.0.1:0"}', "can't be connected to"),
        ('egress.unsafe_resolve = {"A.test" = "127.0.0.1:1"}', "must be a host name in lower case"),
        ('secrets.age_identity_file = "k"', "secrets.file: is missing"),
        ('listen_uds_path = "/run/gateway/gate-admin.sock"', "must differ from listen_uds_path"),
        ('metrics.listen = "0.0.0.0:9464"', "metrics.listen = \"0.0.0.0:9464\": must be an address of loopback"),
        ('metrics.listen = "[::]:9464"', "must be an address of loopback"),
        ('metrics.listen = "192.0.2.1:9464"', "must be an address of loopback"),
        ('metrics.listen = "127.0.0.1:0"', "port 0 can't be told to a scraper"),
        ('metrics = {listen = "[::1]:9464", listen_uds_path = "/run/m.sock"}', "there is one socket for metrics"),
        ('metrics.listen_uds_path = "/run/gateway/gate.sock"', "must differ from listen_uds_path"),
        ('metrics.listen_uds_path = "/run/gateway/gate-admin.sock"', "must differ from listen_admin_uds_path"),
        ('listen_http_addr = "127.0.0.1:3000"\nmetrics.listen = "localhost:3000"', "must differ from listen_http_addr"),
        ('dev_mode = true', 'unknown key "dev_mode"'),
        ('version = "9"', 'unknown key "version"'),
    ],
)  # fmt: skip
def test_each_wrong_setting_is_named_with_what_is_wrong(line: str, said: str) -> None:
    key = line.split(" ")[0].split(".")[0].strip("[]")
    text = "\n".join(one for one in NEEDED.splitlines() if not one.startswith(key)) + "\n" + line
    problems = problems_of(text)
    assert any(said in problem for problem in problems), problems
    assert len(problems) == 1, problems


@pytest.mark.parametrize("form", ["$CREDENTIALS_DIRECTORY/secrets.json", "${CREDENTIALS_DIRECTORY}/secrets.json"])
def test_paths_may_start_at_the_credentials_directory(form: str) -> None:
    text = NEEDED + f'secrets.file = "{form}"'
    loaded = checked(text, environ={"CREDENTIALS_DIRECTORY": "/run/credentials/gateway"})
    assert loaded.settings is not None
    assert loaded.settings.secrets.file == "/run/credentials/gateway/secrets.json"
    assert "CREDENTIALS_DIRECTORY is not set" in problems_of(text)[0]


def test_no_other_variable_is_replaced_in_a_path() -> None:
    assert "only $CREDENTIALS_DIRECTORY is replaced" in problems_of(NEEDED + 'modules_dir = "$HOME/m"')[0]


def test_a_path_of_a_home_folder_is_refused_not_taken_for_a_folder_named_tilde() -> None:
    for given in ("~", "~/m", "~ann/m"):
        (said,) = problems_of(NEEDED + f'modules_dir = "{given}"')
        assert said == f'g.toml:3  modules_dir = "{given}": ~ is not replaced in a path. Write the path out.'
    assert settings_of(NEEDED + 'modules_dir = "./~m"').modules_dir == "/etc/gateway/~m"
