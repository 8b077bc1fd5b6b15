#!/usr/bin/env bash
# Do both ways to install naru give something that works? Run after `./run build`; takes a minute or two.
#   C++:    cmake --install, then a project that says find_package(naru)
#   Python: pip install . into a new environment, then the `naru` command and a script, away from the repository
# Usage: tests/install/run.sh [cpp] [python]    (default: both)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cpp() {
  "$root/run" build naru
  cmake --install "$root/build/release" --prefix "$scratch/prefix" >/dev/null
  cmake -S "$root/tests/install" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
  cmake --build "$scratch/build"
  "$scratch/build/uses_naru"
  echo "C++ package: works"
}

python() {
  "$root/run" build
  "$root/.venv/bin/python" -m venv "$scratch/venv"
  "$scratch/venv/bin/pip" install -q "$root"
  cat >"$scratch/script.py" <<'END'
import torch
from torch import nn

model = nn.Linear(3, 2)
model(torch.ones(4, 3)).sum().backward()
assert model.bias.grad.tolist() == [4.0, 4.0]
print("torch here is naru", torch.__version__)
END
  cd "$scratch"
  venv/bin/naru run script.py
  venv/bin/naru devices
  test -s venv/lib/python*/site-packages/naru/_C.pyi
  echo "Python package: works"
}

if [ $# = 0 ]; then
  cpp
  (python)
fi
for part in "$@"; do
  case $part in
    cpp | python) ("$part") ;;
    *) echo "tests/install/run.sh: no part is called '$part'" >&2 && exit 2 ;;
  esac
done
