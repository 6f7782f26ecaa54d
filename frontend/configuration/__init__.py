"""The configuration in force: manifests, policy, access lists; its checks, changes and revocations."""
