"""Compatibility names that programs and packages look up: older names, private functions, legacy tensor types by dtype.

Each module is imported when one of its names is accessed (`naru/__init__.py` lists them).
"""
