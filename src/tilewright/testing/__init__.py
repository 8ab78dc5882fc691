"""Tools for tests: random programs, graphs and schedules, an interpreter of loop nests, fuzzers, conformance tests."""
