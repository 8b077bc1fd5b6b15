"""How long a C++ compiler takes to read a library's header: python compile_time.py HEADER FOLDER... prints one JSON object, {"work": ..., "seconds": ...}.

The median processor time of five compilations of a program that includes the header and nothing else, without optimisation.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER, FOLDERS = sys.argv[1], sys.argv[2:]


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


with tempfile.TemporaryDirectory() as scratch:
    source = Path(scratch) / "program.cpp"
    source.write_text(f"#include <{HEADER}>\nint main() {{}}\n", encoding="utf-8")
    compiler = os.environ.get("CXX", "g++")
    command = [compiler, "-std=c++20", *(f"-I{folder}" for folder in FOLDERS), "-c", source, "-o", Path(scratch) / "program.o"]
    print(json.dumps({"work": "compile a program that includes the whole library, C++", "seconds": statistics.median(processor_seconds(command) for _ in range(5))}))
