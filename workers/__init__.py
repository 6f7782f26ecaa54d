"""Processes that execute and never decide: template, workers, policy evaluator.

They hold no signing key, no store and no listening socket. What a stranger wrote runs only here.
"""
