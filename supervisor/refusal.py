"""Why the gateway does not start: one clear sentence for a person and one exit code for a program."""

from ipc.exits import Exit


class Refused(Exception):
    """Raised by whatever finds that starting makes no sense. The command line prints the sentence and leaves."""

    def __init__(self, code: Exit, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
