"""The configuration in force: one cell, made before everything that reads it, so that no service waits for another.

A reload replaces its content (frontend/configuration/active.py, the only writer); readers ask the cell each time and
keep no earlier content.
"""

from dataclasses import dataclass, field

from frontend.actions.registry import Registry
from frontend.policy.acl import PolicyFiles
from ipc.settings import IdentitySettings, Settings


@dataclass(slots=True)
class Current:
    """`policy_files` is None before the first load. The methods are for rooms that need one of the values alone."""

    settings: Settings
    registry: Registry = field(default_factory=Registry)
    policy_files: PolicyFiles | None = None

    def registry_now(self) -> Registry:
        """The actions that can be called."""
        return self.registry

    def settings_now(self) -> Settings:
        """Those of the start, with what reloads have changed since."""
        return self.settings

    def identity_now(self) -> IdentitySettings:
        """The mappings of callers to principals."""
        return self.settings.identity

    def policy_files_now(self) -> PolicyFiles | None:
        """The policy's files as they were loaded."""
        return self.policy_files
