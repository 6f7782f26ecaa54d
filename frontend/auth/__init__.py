"""Authentication: leases, DPoP proofs, operator keys, identities and the keys behind them. Decides nothing else."""
