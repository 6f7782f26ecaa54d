"""`gateway import openapi` as its user types it: from a document to manifests that `gateway check` accepts."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from ipc.process.exits import Exit
from tests.support.checked import SECONDS, gateway, whole_configuration
from tests.support.manifests import REPOSITORY
from tests.support.processes import GATEWAY

BILLING = """\
openapi: 3.0.3
info: {title: Billing, version: "2"}
servers: [{url: https://billing.corp.example/v2}]
security: [{token: []}]
components:
  securitySchemes: {token: {type: apiKey, in: header, name: X-Token}}
paths:
  /invoices:
    get:
      operationId: invoiceList
      parameters:
        - {name: status, in: query, schema: {type: string, nullable: true}}
      responses: {200: {description: all of them}}
  /invoices/{id}/refunds:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    post:
      operationId: refundCreate
      requestBody: {content: {application/json: {schema: {type: object, properties: {amount: {type: integer}}}}}}
      responses: {201: {description: made}}
    delete:
      operationId: refundCancel
      responses: {204: {description: done}}
"""


def test_a_document_becomes_manifests_that_check_accepts_and_that_compare_equal(tmp_path: Path) -> None:
    config = whole_configuration(tmp_path)
    (tmp_path / "secrets.json").write_text(
        '{"upstream_token": "token-of-an-upstream", "bank_token": "token-of-a-bank", "billing_token": "one-of-billing"}'
    )
    (tmp_path / "billing.yaml").write_text(BILLING)
    done = gateway(tmp_path, "import", "openapi", "billing.yaml", "--out", "actions")
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "  refund_create  POST   /invoices/{id}/refunds  medium  secret billing_token (header X-Token)" in done.stdout
    )
    checked = gateway(tmp_path, "check", "--config", str(config))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    same = gateway(tmp_path, "import", "openapi", "billing.yaml", "--out", "actions", "--check")
    assert (same.returncode, same.stdout) == (0, "actions: no operation is new, gone or changed.\n")
    (tmp_path / "billing.yaml").write_text(BILLING.replace("amount: {type: integer}", "amount: {type: number}"))
    other = gateway(tmp_path, "import", "openapi", "billing.yaml", "--out", "actions", "--check")
    assert (other.returncode, other.stdout.splitlines()[1:]) == (
        1, ["  changed  POST /invoices/{id}/refunds (refund_create.yaml)"]
    )  # fmt: skip


def test_a_reader_that_is_gone_spoils_no_import(tmp_path: Path) -> None:
    (tmp_path / "billing.yaml").write_text(BILLING)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(
            [GATEWAY, "import", "openapi", "billing.yaml", "--out", "actions"], cwd=tmp_path, stdout=gone,
            stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (Exit.OK, "")
    assert len(list((tmp_path / "actions").iterdir())) == 3


def test_the_interface_of_the_gateway_itself_can_be_imported(tmp_path: Path) -> None:
    source = str(REPOSITORY / "docs" / "openapi.json")
    done = gateway(tmp_path, "import", "openapi", source, "--out", "own", "--server", "https://gate.example/")
    assert done.returncode == 0, done.stderr
    written = [yaml.safe_load(path.read_text()) for path in (tmp_path / "own").iterdir()]
    assert {one["template"]["url_template"] for one in written} >= {"https://gate.example/healthz"}
    assert "(authentication by DPoP)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["api.yaml"], 2, "--out"),
        (["missing.yaml", "--out", "actions"], 77, "can't be read"),
        (["api.yaml", "--out", "actions", "--force", "--check"], 2, "not allowed with"),
        (["api.yaml", "--out", "actions", "--server", "ftp://x.example"], 2, "is no plain https:// address"),
        (["http://api.example.com/x", "--out", "actions"], 2, "fetched over https"),
    ],
)
def test_a_command_line_that_can_t_be_followed_is_one_sentence(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "api.yaml").write_text(BILLING)
    done = gateway(tmp_path, "import", "openapi", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "actions").exists()
