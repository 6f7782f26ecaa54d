"""Processes that execute and never decide: template, workers, policy evaluator.

They hold no signing key, no store and no listening socket. Strangers' code runs only here.
"""
