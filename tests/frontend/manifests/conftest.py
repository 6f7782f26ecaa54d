"""Manifests of each kind, as the tests of actions write them."""

from tests.frontend.actions.conftest import read_kind, read_text

__all__ = ["read_kind", "read_text"]
