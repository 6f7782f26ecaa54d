from frontend.files.problems import FileProblem, Report, did_you_mean, shown


def test_a_problem_reads_place_fault_mend() -> None:
    problem = FileProblem("/etc/gateway/actions/mail.yaml", 4, "fuel", "fuel = 0: must be 1 or more.", "Raise it.")
    assert str(problem) == "/etc/gateway/actions/mail.yaml:4  fuel = 0: must be 1 or more. Raise it."
    assert str(FileProblem("f", 0, "", "the file is empty.", "")) == "f  the file is empty."


def test_the_same_problem_counts_once() -> None:
    report = Report("f")
    for _ in range(2):
        report.wrong(1, "a", 5, "must be text", "Quote it.")
    assert [str(problem) for problem in report.problems] == ["f:1  a = 5: must be text. Quote it."]


def test_shown_text_can_not_disturb_a_terminal() -> None:
    assert shown("\x1b[2J\u202e") == '"\\u001b[2J\\u202e"'
    assert len(shown("x" * 1000)) == 60


def test_a_close_name_is_offered_and_else_all() -> None:
    assert did_you_mean("egres", ["egress", "io"]) == "Did you mean egress?"
    assert did_you_mean("zzz", ["egress", "io"]) == "Known here: egress, io."


def test_nothing_that_a_file_holds_can_disturb_a_terminal_or_grow_a_problem() -> None:
    report = Report("a\nb.yaml")
    report.add(1, "headers.X\x1b[2J", "headers.X\n\u202e = 5: must be text.", "Write " + "x" * 5000)
    (problem,) = report.problems
    assert str(problem).isprintable()
    assert len(str(problem)) < 2000
    assert problem.field == r"headers.X\x1b[2J"
