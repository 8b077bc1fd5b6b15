#!/usr/bin/env bash
# Do both ways to install naru give something that works? Run after `./run build`; takes a minute or two.
#   C++:    cmake --install, then a project that says find_package(naru) (tests/python/project/test_packaging.py does it at every ./run test)
#   archive: the same of libnaru.a, which is built for it (minutes)
#   Python: pip install . into a new environment, then the `naru` command and a script, away from the repository
# Usage: tests/install/run.sh [cpp] [archive] [python]    (default: all)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# package BUILD NAME: installs what was built there, and builds and runs a project that finds it.
package() {
  cmake --install "$1" --prefix "$scratch/$2" >/dev/null
  cmake -S "$root/tests/install" -B "$scratch/$2-build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/$2" >/dev/null
  cmake --build "$scratch/$2-build"
  "$scratch/$2-build/uses_naru" "$scratch/$2-build/libplugin.so"
}

cpp() {
  "$root/run" build naru
  package "$root/build/release" library
  if nm -DC --defined-only "$scratch"/library/lib*/libnaru.so.* | grep -E '^[0-9a-f]+ [A-Za-z] (asmjit|fmt|nlohmann|naru::(render|backends))::'; then
    echo "libnaru.so shows what is its own affair" >&2 && exit 1
  fi
  echo "C++ package: works"
}

archive() {
  cmake -S "$root" -B "$root/build/archive" -G Ninja -DCMAKE_BUILD_TYPE=Release -DNARU_PYTHON=OFF -DNARU_TESTS=OFF -DNARU_BENCH=OFF
  cmake --build "$root/build/archive" --target naru examples
  package "$root/build/archive" archive
  echo "C++ package, archive: works"
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
  archive
  (python)
fi
for part in "$@"; do
  case $part in
    cpp | archive | python) ("$part") ;;
    *) echo "tests/install/run.sh: no part is called '$part'" >&2 && exit 2 ;;
  esac
done
