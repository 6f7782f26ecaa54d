"""The actions of this gateway: manifests, the registry built from them, and the plan of one call."""
