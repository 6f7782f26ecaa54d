"""The error of a process that exits instead of working without a wall."""


class SandboxRefused(Exception):
    """The operating system refused a wall. The process must leave with Exit.SANDBOX."""
