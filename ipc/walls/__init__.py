"""Mechanisms of the kernel that confine a process, one file each. Other packages decide which process gets which."""
