"""Fuzzers: what they find is a bug, and becomes a test."""
