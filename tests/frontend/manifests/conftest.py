"""Manifests of each kind, as the tests of actions write them."""

from tests.frontend.actions.conftest import action_of, manifest_of_kind, read_kind, read_text

__all__ = ["action_of", "manifest_of_kind", "read_kind", "read_text"]
