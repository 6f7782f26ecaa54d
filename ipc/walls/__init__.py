"""What the kernel offers to confine a process, one file a mechanism. Which process gets what is not decided here."""
