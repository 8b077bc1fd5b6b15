"""Whether this process runs under the address sanitizer (`./run sanitize python`), which is slow, ends the process where `operator new` is refused
memory, keeps what is freed for a while, and can't be kept to an address space."""

import os

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
