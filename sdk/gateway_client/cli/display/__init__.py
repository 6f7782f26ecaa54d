"""Standard output: tables, times and text that can't deceive a terminal."""
