"""Secret values by name, from one file; values leave this folder only towards the worker that runs their plan."""
