"""SANITIZED: whether this process runs under the address sanitizer (`./run sanitize python`), which is slow, aborts when `operator new` fails,
delays the reuse of freed memory, and is incompatible with a limited address space."""

import os

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
