"""Why the gateway does not start: one clear sentence for a person and one exit code for a program."""

from ipc.process.exits import Exit


class Refused(Exception):
    """Raised when a start or command can't go on. The command line prints the sentence and exits."""

    def __init__(self, code: Exit, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
