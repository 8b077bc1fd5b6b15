"""`torch.distributed.launch`: torchrun's older name, which passes `--local-rank` to programs unless `--use-env` is given."""

from __future__ import annotations

import sys

from .. import _missing
from .run import get_args_parser, parse_args, run

__all__ = ["get_args_parser", "main", "parse_args", "run"]


def main(args: list[str] | None = None) -> int:
    """torchrun's main with the command line `args` (None: this process's).

    >>> main(["--use-env", "--no-python", "true"])
    0
    """
    from .elastic.multiprocessing.errors import ChildFailedError

    words = sys.argv[1:] if args is None else args
    plain = [word for word in words if word not in ("--use-env", "--use_env")]
    parsed = parse_args(plain)
    parsed.local_rank_argument = len(plain) == len(words)
    try:
        run(parsed)
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


__getattr__ = _missing.module_getattr(__name__)

if __name__ == "__main__":
    sys.exit(main())
