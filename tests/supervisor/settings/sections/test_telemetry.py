"""`[telemetry.otlp]` in the configuration."""

import importlib.util
from pathlib import Path

import pytest

from ipc.configuration.telemetry import OtlpSettings
from supervisor.settings.config import Loaded
from tests.supervisor.settings.parsed import NEEDED, checked
from tests.support.authority import Authority

ENDPOINT = 'endpoint = "http://127.0.0.1:4318"\n'


def loaded(tmp_path: Path, table: str) -> Loaded:
    return checked(f"{NEEDED}[telemetry.otlp]\n{table}", tmp_path)


def texts(tmp_path: Path, table: str) -> str:
    return "\n".join(f"{one.text} {one.mend}" for one in loaded(tmp_path, table).problems)


def test_a_collector_has_the_documented_defaults(tmp_path: Path) -> None:
    settings = loaded(tmp_path, ENDPOINT).settings
    assert settings is not None
    assert settings.telemetry.otlp == OtlpSettings("http://127.0.0.1:4318", None, None, 1.0)


def test_all_settings_of_a_collector_are_read(tmp_path: Path) -> None:
    Authority(tmp_path, "ca")
    (tmp_path / "h").touch(mode=0o600)
    table = 'endpoint = "https://otlp.example/base/"\nheaders_file = "h"\nca_file = "ca.pem"\nsample = 0.25\n'
    settings = loaded(tmp_path, table).settings
    assert settings is not None
    assert settings.telemetry.otlp == OtlpSettings(
        "https://otlp.example/base", str(tmp_path / "h"), str(tmp_path / "ca.pem"), 0.25
    )


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("sample = 0.5\n", "telemetry.otlp.endpoint: is missing"),
        ('endpoint = "http://127.0.0.1:4318/v1/traces"\n', "names the path of one signal"),
        ('endpoint = "grpc://127.0.0.1:4317"\n', "must be an http or https URL"),
        ('endpoint = "https://user:secret@otlp.example"\n', "must hold neither user"),
        (f"{ENDPOINT}sample = 1.5\n", "must be a number above 0, at most 1"),
        (f"{ENDPOINT}sample = 0\n", "must be a number above 0, at most 1"),
        (f"{ENDPOINT}sample = true\n", "must be a number above 0, at most 1"),
        (f"{ENDPOINT}sample = nan\n", "must be a number above 0, at most 1"),
        (f'{ENDPOINT}ca_file = "missing.pem"\n', "missing.pem can't be read as certificates in PEM"),
        (f'{ENDPOINT}headers_file = "missing"\n', "missing: cannot read it: No such file or directory"),
        (f'{ENDPOINT}headers_file = "."\n', "is not a regular file of a sensible size"),
    ],
)
def test_a_collector_that_can_t_be_used_is_named(tmp_path: Path, table: str, problem: str) -> None:
    assert problem in texts(tmp_path, table)


def test_a_missing_package_is_named_with_its_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install '.[otlp]'" in texts(tmp_path, ENDPOINT)
