"""Why an import ends without a result, or leaves one operation out."""

from ipc.process.exits import Exit


class ImportRefused(Exception):
    """The whole import ends; nothing was written. `sentence` is for the person at the terminal."""

    def __init__(self, sentence: str, code: Exit = Exit.CONFIG) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


class LeftOut(Exception):
    """This operation gets no manifest; the message says why, in a few words."""
