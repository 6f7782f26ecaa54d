"""The main job, told step by step against a real gateway: `make demo`."""
