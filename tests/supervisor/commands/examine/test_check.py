"""`gateway check`: the whole configuration, by the processes that would use it, and nothing else happens."""

import codecs
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from frontend.egress.rules import LearnedRule, Rules, encode_rules
from importing.openapi.access import CLIENT_ID, USERNAME
from ipc.process.exits import Exit
from tests.supervisor.test_cli import here
from tests.support.checked import gateway, rewrite_yaml, tree_of, whole_configuration
from tests.support.manifests import PROVIDERS, put_module, trust

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FIXTURES = Path(__file__).resolve().parents[3] / "providers" / "fixtures"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("made")
    whole_configuration(folder)
    return folder


@contextmanager
def copied(made: Path, copy: Path) -> Iterator[Path]:
    """A copy of a whole configuration, to be spoilt."""
    shutil.copytree(made, copy, symlinks=True)
    file = copy / "gateway.toml"
    file.write_text(file.read_text().replace(str(made), str(copy)))
    yield copy
    for path in copy.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Iterator[Path]:
    with copied(made, tmp_path / "etc") as copy:
        yield copy


def check(folder: Path, run: Run = here) -> tuple[int, list[str]]:
    done = run(folder, "check", "--config", "gateway.toml")
    assert done.stderr == ""
    return done.returncode, done.stdout.replace(str(folder), "ETC").splitlines()


def at(file: Path, beginning: str) -> str:
    """`NAME:LINE  ` of the one line that begins so."""
    (line,) = [number for number, text in enumerate(file.read_text().splitlines(), 1) if text.startswith(beginning)]
    return f"{file.name}:{line}  "


def test_a_whole_configuration_has_no_problem_also_with_byte_order_marks_and_is_left_as_it_was(folder: Path) -> None:
    (folder / "keys" / "receipt-keys.jwks.json").unlink()  # a start makes it
    for place in ("gateway.toml", "actions/text_digest.yaml", "policy/gateway.rego", "policy/data.json"):
        (folder / place).write_bytes(codecs.BOM_UTF8 + (folder / place).read_bytes())
    before = tree_of(folder)
    assert check(folder, gateway) == (0, ["gateway.toml: no problems, 7 actions, policy version test-1."])
    assert tree_of(folder) == before
    assert not (folder / "state").exists()


def test_everything_that_is_wrong_is_said_at_once_sorted_with_its_place(folder: Path) -> None:
    actions, policy = folder / "actions", folder / "policy"
    text = (folder / "gateway.toml").read_text()
    text = "lease_ttl_seconds = 0\n" + text.replace("dpop_jkt", "# dpop_jkt") + '[identity]\nprovider = "none"\n'
    (folder / "gateway.toml").write_text(text)
    (folder / "secrets.json").write_text('{"bank_token": "1234567"}')
    (folder / "keys" / "keys" / "grant.pem").chmod(0o644)
    http = put_module(actions, (FIXTURES / "http_probe.wasm").read_bytes())
    other = put_module(actions, (PROVIDERS / "echo.wasm").read_bytes(), as_digest="c" * 64)
    unknown = put_module(actions, (PROVIDERS / "echo.wasm").read_bytes() + b"\0\x02\x01a")
    rewrite_yaml(actions / "text_digest.yaml", provider_module_digest=http)
    rewrite_yaml(actions / "spin.yaml", provider_module_digest=other, required_imports=[])
    rewrite_yaml(actions / "forbidden_export.yaml", provider_module_digest=unknown, required_imports=[], egress=None,
                 template=None, verifier_kind="none", verification_config=None, secrets=None)  # fmt: skip
    (actions / "twice.yaml").write_text("risk_level: extreme\naction_id: http_fetch\nversoin: 1.0.0\n")
    (policy / "gateway.rego").write_text((policy / "gateway.rego").read_text().replace("input.scopes", "inputt.scopes"))
    cut = put_module(actions, (PROVIDERS / "echo.wasm").read_bytes()[:-40])
    trust(actions, cut)
    rewrite_yaml(actions / "file_write.yaml", provider_module_digest=cut)
    before = tree_of(folder)

    code, lines = check(folder, gateway)
    assert code == Exit.CONFIG
    modules, module = "ETC/actions/modules", "provider_module_digest"
    listed = f"trusted_modules.yaml does not list {unknown}, so every call would be refused."
    toml, rego = folder / "gateway.toml", policy / "gateway.rego"
    wanted = [
        at(actions / "text_digest.yaml", module)
        + f"module {modules}/{http[7:]}.wasm: imports gateway:provider/http@1.0.0"
        ", which required_imports does not list. Add http to required_imports, or name another module.",
        at(actions / "spin.yaml", module) + f"module {modules}/{'c' * 64}.wasm: the module is sha256:",
        at(actions / "forbidden_export.yaml", module) + f"module {modules}/{unknown[7:]}.wasm: {listed}",
        at(actions / "file_write.yaml", module) + f"module {modules}/{cut[7:]}.wasm: ",
        'twice.yaml:1  risk_level = "extreme": must be one of low, medium, high, critical.',
        'twice.yaml:2  action_id = "http_fetch" is taken by ETC/actions/http_fetch.yaml:1. Give it another id',
        'twice.yaml:3  unknown field "versoin" at the top. Did you mean version?',
        at(actions / "http_post.yaml", "- name: upstream_token")
        + "the secret upstream_token is required, and ETC/secrets.json does not have it.",
        at(actions / "payment_transfer.yaml", "- name: bank_token")
        + "the secret bank_token is shorter than 8 characters without spaces. Use a longer one: ",
        at(rego, "applies_scope") + 'data.gateway.applies_scope: "scope in inputt.scopes" never gets a value',
        at(toml, "lease_ttl_seconds") + "lease_ttl_seconds = 0: must be 1 or more. Use 1 to 3600.",
        at(toml, "grant_signing") + "grant_signing_key_path: ETC/keys/keys/grant.pem: mode 0644 lets others in.",
        at(toml, "[[operators]]") + 'operators[0].dpop_jkt of "ann": is missing, a key alone is not allowed',
        at(toml, "provider =") + 'identity.provider = "none": not allowed in production. ',
    ]
    for one in wanted:
        assert one in "\n".join(lines), one
    assert lines[-1] == f"{len(lines) - 1} problems, nothing started."
    assert tree_of(folder) == before
    places = [line.split("  ")[0].rpartition(":") for line in lines[:-1]]
    assert places == sorted(places, key=lambda place: (place[0], int(place[2])))


def test_a_checkpoint_key_that_is_gone_is_said_where_its_ledger_has_begun(folder: Path) -> None:
    key = folder / "keys" / "keys" / "checkpoint.pem"
    key.unlink()
    assert check(folder)[0] == Exit.OK, "the first start makes it"
    (folder / "state").mkdir(mode=0o700)
    shutil.copy2(folder / "keys" / "checkpoint-keys.jwks.json", folder / "state")
    code, lines = check(folder)
    assert (code, lines[:-1]) == (Exit.CONFIG, [
        at(folder / "gateway.toml", "receipt_signing") + "receipt_signing_key_path: ETC/keys/keys/checkpoint.pem: "
        "cannot read it: No such file or directory.",
    ])  # fmt: skip


def test_names_that_an_import_left_to_be_filled_in_are_said_at_their_lines(folder: Path) -> None:
    basic, token = folder / "actions" / "http_post.yaml", folder / "actions" / "payment_transfer.yaml"
    rewrite_yaml(
        basic, secrets=[{"name": "upstream_token", "inject": {"basic": {"username": USERNAME}}}]
    )  # fmt: skip
    server = {"token_url": "https://login.example.com/token", "client_id": CLIENT_ID}
    rewrite_yaml(token, secrets=[{"name": "bank_token", "inject": {"oauth2_client_credentials": server}}])
    code, lines = check(folder)
    left = "is left from the import, so every call would be refused. Write the name that the API knows this gateway by."
    assert (code, [line.partition("actions/")[2] for line in lines[:-1]]) == (Exit.CONFIG, [
        at(basic, "      username") + f'secrets[0].inject.basic.username = "{USERNAME}": {left}',
        at(token, "      client_id")
        + f'secrets[0].inject.oauth2_client_credentials.client_id = "{CLIENT_ID}": {left}',
    ])  # fmt: skip


def test_problems_are_there_for_programs_too_also_of_files_that_can_not_be_read(folder: Path) -> None:
    (folder / "policy" / "freeze.rego").symlink_to("nowhere")
    (folder / "policy" / "data.json").unlink()
    os.mkfifo(folder / "actions" / "pipe.yml")
    (folder / "actions" / "more").mkdir()
    (folder / "actions" / "more" / "echo.yaml").write_text("x")
    (folder / "gateway.toml").write_text("lease_ttl_seconds = 0\n" + (folder / "gateway.toml").read_text())
    rewrite_yaml(folder / "actions" / "spin.yaml", risk_level="mild")
    done = here(folder, "check", "--config", "gateway.toml", "--json")
    assert done.returncode == Exit.CONFIG
    told = json.loads(done.stdout)
    unreadable = [one for one in told["problems"] if one["file"].endswith(("more", "pipe.yml", "rego", "data.json"))]
    assert [one["file"].removeprefix(f"{folder}/") for one in unreadable] == [
        "actions/more", "actions/pipe.yml", "policy/data.json", "policy/freeze.rego",
    ]  # fmt: skip
    assert unreadable[2]["message"] == "is missing."
    told["problems"] = [one for one in told["problems"] if one not in unreadable]
    assert told == {
        "problems": [
            {
                "file": f"{folder}/actions/spin.yaml",
                "line": int(at(folder / "actions" / "spin.yaml", "risk_level").split(":")[1]),
                "field": "risk_level",
                "message": 'risk_level = "mild": must be one of low, medium, high, critical.',
                "mend": "Known here: critical, high, low, medium.",
            },
            {
                "file": "gateway.toml",
                "line": 1,
                "field": "lease_ttl_seconds",
                "message": "lease_ttl_seconds = 0: must be 1 or more.",
                "mend": "Use 1 to 3600.",
            },
        ],
        "warnings": [],
    }


HOOKS = (
    ("fine", "", ""),
    ("none", "", "ETC/none: cannot read it: No such file or directory."),
    ("open", "", "ETC/open: mode 0644 lets others in. Use chmod 0600."),
    ("gone", "disable = true\n", ""),
    ("short", "", "ETC/short: the secret must have 16 characters or more."),
)
"""(name, more lines, what is wrong with the file of its secret)."""


def add_hooks(folder: Path) -> None:
    """A webhook for each."""
    for name, text, mode in (("fine", "a secret of some words", 0o600), ("open", "a secret of some words", 0o644),
                             ("short", "hush", 0o600)):  # fmt: skip
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    with (folder / "gateway.toml").open("a") as toml:
        for name, more, _ in HOOKS:
            url = "https://hooks.example/"
            toml.write(f'[[webhooks]]\nname = "{name}"\nurl = "{url}"\n{more}secret_file = "{name}"\n')


def said_of_hooks(folder: Path) -> list[str]:
    return [
        at(folder / "gateway.toml", f'secret_file = "{name}"') + f"webhooks[{index}].secret_file: {said}"
        for index, (name, _, said) in enumerate(HOOKS)
        if said
    ]


@pytest.fixture(scope="module")
def spoilt(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """A configuration with a mistake of many kinds, and what is said of it."""
    with copied(made, tmp_path_factory.mktemp("spoilt") / "etc") as folder:
        (folder / "state").mkdir()
        (folder / "state").chmod(0o777)
        (folder / "run").mkdir()
        (folder / "run" / "gate.sock").write_text("no socket")
        (folder / "secrets.json").chmod(0o640)
        (folder / "keys" / "keys" / "lease.pem").unlink()
        (folder / "keys" / "receipt-keys.jwks.json").write_text("{}")
        loop = "count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); x == y + 0.5]) == 1"
        rego = folder / "policy" / "gateway.rego"
        rego.write_text(rego.read_text().replace("applies_scope if {", "applies_scope if {\n\t" + loop))
        actions = folder / "actions"
        write = yaml.safe_load((actions / "file_write.yaml").read_text())
        rewrite_yaml(actions / "file_write.yaml", fs=write["fs"] | {"root": "modules-cache"})
        shutil.copy(actions / "file_write.yaml", actions / "link_write.yaml")
        rewrite_yaml(actions / "link_write.yaml", action_id="link_write", fs=write["fs"] | {"root": "files/notes"})
        (folder / "state" / "files").mkdir(mode=0o700)
        (folder / "state" / "files" / "notes").symlink_to("../keys")
        rewrite_yaml(actions / "http_post.yaml", egress=OTHER_HOST)
        transfer = actions / "payment_transfer.yaml"
        transfer.write_text(transfer.read_text().replace("to: '{to}'", "to: {to}"))
        add_hooks(folder)
        toml = folder / "gateway.toml"
        toml.write_text(toml.read_text().replace('url = "https://hooks.example/"', 'url = "https://10.0.0.1/"', 1))
        with socket.socket(socket.AF_UNIX) as listening:
            # A gateway that runs here is no problem.
            listening.bind(str(folder / "run" / "gate-admin.sock"))
            code, lines = check(folder)
        assert (code, lines[-1]) == (Exit.CONFIG, "14 problems, nothing started.")
        yield folder, lines[:-1]


OTHER_HOST = {
    "profile": "direct_allowlist", "allowed_domains": ["other.example"], "allowed_methods": ["POST"],
}  # fmt: skip


def test_folders_sockets_and_files_are_said_where_they_are_named(spoilt: tuple[Path, list[str]]) -> None:
    folder, lines = spoilt
    toml, jwks = folder / "gateway.toml", "ETC/keys/receipt-keys.jwks.json"
    state = "ETC/state has mode 0777, and keys lie in it. Run chmod 0700 ETC/state, or name another."
    lease = "lease_signing_key_path: ETC/keys/keys/lease.pem: cannot read it: No such file or directory."
    open_file = "ETC/secrets.json: mode 0640 lets others in. Use chmod 0600."
    secrets = f"secrets.file: {open_file} Correct the file, its owner or its mode."
    assert [line for line in lines if line.startswith("gateway.toml") and "webhooks" not in line] == [
        f"gateway.toml:1  state_dir: {state}",
        "gateway.toml:3  listen_uds_path: ETC/run/gate.sock is there and is not a socket. Move it away.",
        at(toml, "lease_signing") + lease,
        at(toml, "receipt_keys")
        + f"receipt_keys_jwks_path: {jwks}: is not a JWKS, an object with an array named keys.",
        at(toml, "file =") + secrets,
    ]


def test_roots_elsewhere_or_over_a_link_hosts_that_no_domain_allows_and_braces_are_said_at_their_lines(
    spoilt: tuple[Path, list[str]],
) -> None:
    folder, lines = spoilt
    actions = folder / "actions"
    assert [line for line in lines if line.startswith("ETC/actions")] == [
        "ETC/actions/" + at(actions / "file_write.yaml", "  root") + 'fs.root = "modules-cache": must be `files`, or a '
        "folder in it such as files/reports. Move the folder into the one that files_dir names (by default "
        "state_dir/files).",
        "ETC/actions/" + at(actions / "http_post.yaml", "  url_template") + "template.url_template: "
        "upstream.gateway.test is not in egress.allowed_domains, so every call would wait for a person. Add it there, "
        "or correct the host.",
        "ETC/actions/" + at(actions / "link_write.yaml", "  root") + 'fs.root = "files/notes": a link on the way leads '
        "to ETC/state/keys. Put a folder in place of the link: ETC/state/files/notes.",
        "ETC/actions/" + at(actions / "payment_transfer.yaml", "    to: {to}") + "template.body_template.to holds "
        "braces without quotes, which YAML takes for a mapping with an empty value. Quote it, as \"{name}\"; for an "
        "empty value write null.",
    ]  # fmt: skip


def test_an_endless_policy_is_reported_in_time(spoilt: tuple[Path, list[str]]) -> None:
    (of_policy,) = [line for line in spoilt[1] if line.startswith("ETC/policy")]
    assert of_policy.startswith("ETC/policy  the policy process was lost while it tried this policy")


def test_the_file_of_a_webhooks_secret_is_looked_at_where_it_is_named_also_beside_another_mistake(
    spoilt: tuple[Path, list[str]],
) -> None:
    folder, lines = spoilt
    said = [line for line in lines if "webhooks" in line]
    assert [line for line in said if "secret_file" in line] == said_of_hooks(folder)
    assert len([line for line in said if "webhooks[0].url" in line]) == 1


def test_in_dev_mode_webhooks_are_looked_at_too_and_a_missing_folder_is_a_problem(folder: Path) -> None:
    add_hooks(folder)
    shutil.rmtree(folder / "actions")
    code, lines = check(folder, lambda folder, *rest: here(folder, *rest, "--dev"))
    assert (code, [line for line in lines if "webhooks" in line]) == (Exit.CONFIG, said_of_hooks(folder))
    (said,) = [line for line in lines if line.startswith("ETC/actions")]
    assert said.startswith("ETC/actions  the manifests folder cannot be read: No such file or directory. Create")


def test_a_host_that_was_learned_is_no_problem_and_a_value_that_no_action_offers_a_warning(folder: Path) -> None:
    rewrite_yaml(folder / "actions" / "http_post.yaml", egress=OTHER_HOST)
    learned = LearnedRule("http_post", "upstream.gateway.test", "cli", "2026-01-01T00:00:00.000Z", "ann")
    fronts = folder / "state" / "fronts"
    fronts.mkdir(mode=0o700, parents=True)
    fronts.parent.chmod(0o700)
    (fronts / "learned.json").write_bytes(encode_rules(Rules(domains=(learned,))))
    (fronts / "learned.json").chmod(0o600)
    file = folder / "policy" / "data.json"
    rule = {"pointer": "/amount", "hold_above": 1}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"thresholds": {"payment_transfer": [rule]}}))
    said = "thresholds.payment_transfer: /amount is not in the policy_input of the action's manifest; did you mean"
    assert check(folder) == (
        Exit.OK,
        [
            f"ETC/policy/data.json  warning: {said} /amount_cents?",
            "gateway.toml: no problems, 7 actions, policy version test-1.",
        ],
    )


def test_a_file_that_is_no_toml_is_all_that_can_be_said(folder: Path) -> None:
    (folder / "gateway.toml").write_text("a = \n")
    assert check(folder) == (
        Exit.CONFIG,
        ["gateway.toml:1  is not TOML: Invalid value.", "1 problem, nothing started."],
    )


def test_settings_that_can_not_be_judged_are_left_out(folder: Path) -> None:
    text = (folder / "gateway.toml").read_text()
    text = text.replace('manifests_dir = "actions"', "manifests_dir = 3").replace('"state"', '""')
    (folder / "gateway.toml").write_text(text.replace("public_base_url", "# public_base_url"))
    code, lines = check(folder)
    assert code == Exit.CONFIG
    assert [line.split(": ")[0] for line in lines[:-1]] == [
        "gateway.toml  public_base_url",
        'gateway.toml:1  state_dir = ""',
        "gateway.toml:5  manifests_dir = 3",
    ]


def test_a_dev_configuration_is_checked_by_the_rules_of_dev(tmp_path: Path) -> None:
    (tmp_path / "dev.toml").write_text('[identity]\nprovider = "none"\n')
    done = here(tmp_path, "check", "--dev", "--config", "dev.toml", "--state-dir", "state")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("dev.toml: no problems, 7 actions, policy version dev-1. Weakened: dev_mode, ")
    assert sorted(os.listdir(tmp_path)) == ["dev.toml"]


@pytest.mark.parametrize(
    "arguments", [["check"], ["check", "--config", "g", "--state-dir", "s"], ["check", "--confg", "g"]]
)
def test_a_command_line_that_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    done = here(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert done.stderr.startswith("usage: gateway")
