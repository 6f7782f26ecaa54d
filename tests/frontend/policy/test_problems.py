"""The engine's messages about a policy, as problems with their places."""

import pytest

from frontend.policy.problems import policy_problems

FOLDER = "/etc/gateway/policy"


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("gateway.rego:3: Syntax error", f"{FOLDER}/gateway.rego:3  Syntax error."),
        (
            'my rules.rego:12 (data.gateway.denial): "is_knwon" never gets a value: misspelt',
            f'{FOLDER}/my rules.rego:12  data.gateway.denial: "is_knwon" never gets a value: misspelt.',
        ),
        (f"{FOLDER}/data.json:4: acl.a: Expected `array`", f"{FOLDER}/data.json:4  acl.a: Expected `array`."),
        (f"{FOLDER}/data.json: is missing", f"{FOLDER}/data.json  is missing."),
        (f"{FOLDER}/b.rego: Permission denied", f"{FOLDER}/b.rego  Permission denied."),
        (f"{FOLDER}: holds no *.rego file", f"{FOLDER}  holds no *.rego file."),
        ("http.send: a decision may not use it", f"{FOLDER}  http.send: a decision may not use it."),
        ("it did not compile within 10 s", f"{FOLDER}  it did not compile within 10 s."),
        (
            'asked about "a spent budget" it gives no decision: undefined',
            f'{FOLDER}  asked about "a spent budget" it gives no decision: undefined.',
        ),
        ("gateway.rego:1: a\x1b[2J\n\u202eb", rf"{FOLDER}/gateway.rego:1  a\x1b[2J\n\u202eb."),
    ],
)
def test_a_sentence_of_the_engine_gets_its_place(sentence: str, shown: str) -> None:
    assert [str(problem) for problem in policy_problems([sentence], FOLDER)] == [shown]


def test_problems_are_sorted_by_place_and_each_is_there_once() -> None:
    problems = policy_problems(["b.rego:9: x", "b.rego:10: y", "a.rego:11: z", "b.rego:9: x"], FOLDER + "/")
    assert [(problem.file.rpartition("/")[2], problem.line) for problem in problems] == [
        ("a.rego", 11),
        ("b.rego", 9),
        ("b.rego", 10),
    ]
