"""Manifests of actions: read, checked and filled in. Never decides what may run."""
