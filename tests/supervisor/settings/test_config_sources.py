"""The configuration read from a file and from the environment, which may hold anything at all."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.settings import Settings
from supervisor.settings.config import check, open_document
from supervisor.settings.problems import in_order
from tests.supervisor.settings.parsed import NEEDED, checked


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


def test_problems_of_the_environment_are_named_by_variable_after_those_of_the_file(tmp_path: Path) -> None:
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
    loaded = checked(raw)
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


@given(st.one_of(DOCUMENT.map(str.encode), st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_any_bytes_give_settings_or_problems_and_nothing_else(raw: bytes) -> None:
    loaded = checked(raw)
    assert (loaded.settings is None) == bool(loaded.problems)
    assert all("\n" not in str(problem) for problem in loaded.problems)


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
