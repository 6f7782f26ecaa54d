"""What is in force: manifests, policy, access lists; how it is checked, changed and revoked."""
