"""WebAssembly: the engine, what a component may look like, one call from instance to outcome."""
