"""Why what is not right on the board is not, where the error itself does not say it: by operator."""

from __future__ import annotations

REASONS: dict[str, str] = {}
