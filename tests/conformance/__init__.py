"""The contract as tests: a module for each of its tables, a test for each of its rows.

`contract/` lists the rows in our own words, `report.py` writes docs/conformance.md from them and from the tests.
"""
