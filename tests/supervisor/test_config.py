"""Configuration: settings or every problem at once, each with its place and its mend."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipc.settings import OperatorSettings, PrincipalMapping, Settings
from supervisor.config import check, open_document
from supervisor.document import Document, parse_document
from supervisor.kind import Context
from supervisor.operators import digest_of
from supervisor.problems import Problem, in_order, report

NEEDED = 'state_dir = "/var/lib/gateway"\npublic_base_url = "https://gate.example"\n'
KEY = "key-ada-" + "0a" * 16
JKT = "x" * 42 + "w"


def problems_of(text: str, environ: Mapping[str, str] | None = None, folder: Path = Path("/etc/gateway")) -> list[str]:
    context = Context(folder, environ or {})
    loaded = check(*with_context(parse_document("g.toml", text.encode()), context))
    assert (loaded.settings is None) == bool(loaded.problems)
    return [str(problem) for problem in in_order(loaded.problems)]


def with_context(
    parsed: tuple[Document, list[Problem]], context: Context
) -> tuple[Document, Context, list[Problem]]:  # fmt: skip
    document, problems = parsed
    return document, context, problems


def settings_of(text: str, folder: Path = Path("/etc/gateway")) -> Settings:
    loaded = check(*with_context(parse_document("g.toml", text.encode()), Context(folder, {})))
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
        'g.toml:7  limits.max_in_flight = "many": must be a whole number. Use 1 to 100000.',
        'g.toml:8  unknown key "drain_second" in [limits]. Did you mean drain_seconds?',
    ]


def test_the_report_says_how_many_and_that_nothing_was_started() -> None:
    document, problems = parse_document("g.toml", (NEEDED + "a = 1").encode())
    loaded = check(document, Context(Path("/"), {}), problems)
    assert report(loaded.problems).endswith('unknown key "a".\n1 problem, nothing started.\n')
    empty = check(parse_document("e.toml", b"")[0], Context(Path("/"), {}), [])
    assert "2 problems, nothing started." in report(empty.problems)


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
        ("workers.http.min_spare = 13", "must not be above workers.http.max = 12"),
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


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('name = "ada"', "needs exactly one of"),
        (f'name = "ada"\napi_key = "{KEY}"\napi_key_sha256 = "{"0" * 64}"', "needs exactly one of"),
        (f'api_key = "{KEY}"', "name: is missing"),
        ('name = "ada"\napi_key = "key-bob-' + "0" * 32 + '"', "must have the form key-ada-<32"),
        (f'name = "ada"\napi_key_sha256 = "{KEY}"', "64 hexadecimal digits"),
        (f'name = "a/b"\napi_key = "{KEY}"', "must be letters, digits"),
        (f'name = "ada"\ndpop_jkt = "short"\napi_key = "{KEY}"', "RFC 7638 thumbprint"),
        ('name = "ada"\napi_key_file = "/nowhere/key"', "cannot be read: No such file or directory"),
        (f'name = "ada"\napi_key = "{KEY}"\n[[operators]]\nname = "ada"\napi_key_sha256 = "{"1" * 64}"', "twice"),
        (
            f'name = "ada"\napi_key = "{KEY}"\n[[operators]]\nname = "bob"\napi_key_sha256 = "{digest_of(KEY)}"',
            '"bob" and "ada" share one key',
        ),
    ],
)
def test_each_wrong_operator_is_named_with_what_is_wrong_and_without_the_key(rows: str, said: str) -> None:
    problems = problems_of(NEEDED + "[[operators]]\n" + rows)
    assert any(said in problem for problem in problems), problems
    assert not any(KEY in problem or "0" * 32 in problem for problem in problems)


def test_signatures_can_not_be_required_of_an_operator_without_a_key() -> None:
    rows = f'[approvals]\nrequire_signature = true\n[[operators]]\nname = "ada"\napi_key = "{KEY}"\n'
    (problem,) = problems_of(NEEDED + rows)
    assert 'operators[0].dpop_jkt of "ada": is missing, and approvals.require_signature is true.' in problem
    assert problems_of(NEEDED + rows + f'dpop_jkt = "{JKT}"\n') == []
    assert problems_of(NEEDED + rows.replace("true", "false")) == []


def test_an_operator_key_may_lie_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "ada.key"
    file.write_text(KEY + "\n")
    text = NEEDED + '[[operators]]\nname = "ada"\napi_key_file = "ada.key"\n'
    file.chmod(0o640)
    assert "is open to other users" in problems_of(text, folder=tmp_path)[0]
    file.chmod(0o600)
    assert settings_of(text, folder=tmp_path).operators[0].api_key_sha256 == digest_of(KEY)


@pytest.mark.parametrize("form", ["$CREDENTIALS_DIRECTORY/secrets.json", "${CREDENTIALS_DIRECTORY}/secrets.json"])
def test_paths_may_start_at_the_credentials_directory(form: str) -> None:
    text = NEEDED + f'secrets.file = "{form}"'
    context = Context(Path("/etc/gateway"), {"CREDENTIALS_DIRECTORY": "/run/credentials/gateway"})
    loaded = check(*with_context(parse_document("g.toml", text.encode()), context))
    assert loaded.settings is not None
    assert loaded.settings.secrets.file == "/run/credentials/gateway/secrets.json"
    assert "CREDENTIALS_DIRECTORY is not set" in problems_of(text)[0]


def test_no_other_variable_is_replaced_in_a_path() -> None:
    assert "only $CREDENTIALS_DIRECTORY is replaced" in problems_of(NEEDED + 'modules_dir = "$HOME/m"')[0]


# ------------------------------------------------------------------------- sources


def loaded_with(tmp_path: Path, text: str, **environ: str) -> tuple[Settings | None, list[str]]:
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    loaded = check(*open_document(file, environ))
    return loaded.settings, [str(problem) for problem in in_order(loaded.problems)]


def test_the_environment_goes_over_the_file(tmp_path: Path) -> None:
    parsed, problems = loaded_with(
        tmp_path,
        NEEDED + "[limits]\nmax_in_flight = 3\nmax_connections = 4\n",
        GATEWAY__LIMITS__MAX_IN_FLIGHT="7",
        GATEWAY__PUBLIC_BASE_URL="https://other.example/",
        GATEWAY__STATE_DIR="/srv/123",
        GATEWAY__UNSAFE_EXPOSE_HTTP="true",
        GATEWAY__EGRESS__UNSAFE_RESOLVE='{ "a.test" = "127.0.0.1:9" }',
        GATEWAY__IDENTITY__PEERCRED__PRINCIPALS__1004__PRINCIPAL="ada",
        GATEWAY_UNRELATED="x",
    )
    assert not problems
    assert parsed is not None
    assert (parsed.limits.max_in_flight, parsed.limits.max_connections) == (7, 4)
    assert (parsed.public_base_url, parsed.state_dir) == ("https://other.example", "/srv/123")
    assert parsed.unsafe_expose_http
    assert parsed.egress.unsafe_resolve == {"a.test": "127.0.0.1:9"}
    assert parsed.identity.principals["1004"].principal == "ada"


def test_a_text_that_looks_like_a_number_stays_a_text_where_a_text_is_wanted(tmp_path: Path) -> None:
    parsed, _ = loaded_with(tmp_path, NEEDED, GATEWAY__STATE_DIR="123", GATEWAY__MANIFESTS_DIR='"/quoted"')
    assert parsed is not None
    assert (parsed.state_dir, parsed.manifests_dir) == (str(tmp_path / "123"), "/quoted")


def test_what_is_wrong_in_the_environment_is_named_by_its_variable_after_the_file(tmp_path: Path) -> None:
    _, problems = loaded_with(
        tmp_path,
        NEEDED + "nonsense_key_here = 1\n",
        GATEWAY__LIMITS__MAX_INFLIGHT="7",
        GATEWAY__LIMITS__DRAIN_SECONDS="soon",
        GATEWAY__LIMITS="3",
        GATEWAY__STATE_DIR="1\nlease_ttl_seconds = 9",
    )
    assert problems[0].endswith('gateway.toml:3  unknown key "nonsense_key_here".')
    assert [problem.split("  ")[0] for problem in problems[1:]] == [
        "environment GATEWAY__LIMITS",
        "environment GATEWAY__LIMITS__DRAIN_SECONDS",
        "environment GATEWAY__LIMITS__MAX_INFLIGHT",
        "environment GATEWAY__STATE_DIR",
    ]
    assert "Did you mean GATEWAY__LIMITS__MAX_IN_FLIGHT?" in problems[3]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"a = \n", "g.toml:1  is not TOML: Invalid value."),
        (b"a = 1\nb = \"x", "g.toml:2  is not TOML"),
        (b"a = 1\na = 2", "g.toml:2  is not TOML: Cannot overwrite a value."),
        (b"ok = 1\nbad = \"\xff\"", "g.toml:2  is not UTF-8."),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "is not TOML"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_toml_is_the_only_problem(raw: bytes, said: str) -> None:
    document, problems = parse_document("g.toml", raw)
    loaded = check(document, Context(Path("/"), {}), problems)
    assert [said in str(problem) for problem in loaded.problems] == [True], loaded.problems


def test_a_missing_or_huge_file_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    for file in (tmp_path / "none.toml", tmp_path):
        assert "cannot be read" in str(check(*open_document(file, {})).problems[0])
    huge = tmp_path / "huge.toml"
    with huge.open("wb") as stream:
        os.truncate(stream.fileno(), 2_000_000)
    assert "is larger than" in str(check(*open_document(huge, {})).problems[0])


# ------------------------------------------------------------------------- anything at all

WORDS = [
    "state_dir", "limits", "max_in_flight", "operators", "name", "api_key", "identity", "peercred", "principals",
    "principal", "egress", "unsafe_resolve", "workers", "http", "webhooks", "1004", "x",
]  # fmt: skip
VALUE = st.sampled_from(
    ["1", "-1", "true", "nan", "0x" + "f" * 4000, '""', '"a\\u0000b"', "[]", "[[1]]", "{}", "{name = 3}", "1979-05-27",
     '"/var"', "[{}]", "[{name = 'a'}, 3]", '{"1" = {principal = "p"}}'],
)  # fmt: skip
DOTTED = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(".".join)
DOCUMENT = st.lists(
    st.one_of(
        st.tuples(DOTTED, VALUE).map(" = ".join),
        DOTTED.map("[{}]".format),
        DOTTED.map("[[{}]]".format),
    ),
    max_size=8,
).map("\n".join)


@settings(max_examples=100, deadline=None)
@given(st.one_of(DOCUMENT.map(str.encode), st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_any_bytes_give_settings_or_problems_and_nothing_else(raw: bytes) -> None:
    document, problems = parse_document("g.toml", raw)
    loaded = check(document, Context(Path("/etc/gateway"), {}), problems)
    assert (loaded.settings is None) == bool(loaded.problems)
    assert all("\n" not in str(problem) for problem in loaded.problems)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.lists(st.sampled_from(WORDS), max_size=4).map(lambda words: "GATEWAY__" + "__".join(words).upper()),
        st.one_of(VALUE, st.text(max_size=20)),
        max_size=4,
    )
)
def test_any_environment_gives_settings_or_problems_and_nothing_else(environ: dict[str, str]) -> None:
    loaded = check(*open_document(None, environ))
    assert (loaded.settings is None) == bool(loaded.problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_pending_per_principal = 501", "max_pending_per_principal = 501: must not be above 500"),
        ("max_pending = 100", "max_pending_per_principal = 100: must not be above 50"),
        ("max_pending_bytes = 20000000", "max_pending_bytes_per_principal = 16777216: must not be above 10000000"),
        ("max_pending = 1", "max_pending = 1: must be 2 or more"),
        ("max_pending_bytes_per_principal = 1", "max_pending_bytes_per_principal = 1: must be 8388608 or more"),
    ],
)
def test_caps_of_holds_that_would_let_one_principal_keep_others_from_waiting_are_refused(text: str, said: str) -> None:
    (problem,) = problems_of(f'state_dir = "/s"\npublic_base_url = "https://g.example"\n[approvals]\n{text}\n')
    assert f"g.toml:4  approvals.{said}" in problem


def test_caps_of_holds_may_be_as_narrow_as_one_for_each(tmp_path: Path) -> None:
    caps = "max_pending = 2\nmax_pending_per_principal = 1\n"
    text = f'state_dir = "/s"\npublic_base_url = "https://g.example"\n[approvals]\n{caps}'
    assert not [one for one in problems_of(text) if "approvals" in one]
