"""What can be done here: manifests, the registry built from them, and the plan of one call."""
