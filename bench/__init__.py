"""Floors and ourselves, measured in one run and told as ratios: `make bench`."""
