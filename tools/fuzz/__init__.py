"""Fuzzers: random calls of every public function (api), mutated files (files), and what both have found so far (corpus)."""
