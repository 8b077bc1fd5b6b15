"""Compiles texts of kernels by AMD's hipRTC, which ends the process where it dislikes its target. Reads JSON from standard input ({"library",
"options", "jobs": [[architecture, whole, [file, ...]], ...]}; whole: down to machine code, else as C++ only), writes a line of JSON for each job: null, or what is wrong; at the end its CPU time."""
import ctypes
import json
import struct
import sys
import time
from pathlib import Path

from kernel_texts import in_one

asked = json.load(sys.stdin)
rtc = ctypes.CDLL(asked["library"])


def compiled(text, options):
    """(log, None), or (None, the code object)."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert rtc.hiprtcCreateProgram(ctypes.byref(program), text, b"kernel.hip", 0, None, None) == 0
    code = rtc.hiprtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*map(str.encode, options)))
    get_size, get = (rtc.hiprtcGetProgramLogSize, rtc.hiprtcGetProgramLog) if code else (rtc.hiprtcGetCodeSize, rtc.hiprtcGetCode)
    get_size(program, ctypes.byref(size))
    out = ctypes.create_string_buffer(size.value + 1)
    get(program, out)
    rtc.hiprtcDestroyProgram(ctypes.byref(program))
    return (f"{code}: {out.value.decode(errors='replace')}", None) if code else (None, out.raw[: size.value])


def descriptors(code):
    """The kernel descriptors of a code object (an ELF file): symbols that end in .kd, 64 bytes each."""
    assert code[:4] == b"\x7fELF"
    at, size, count = struct.unpack_from("<Q", code, 40)[0], *struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, at + i * size) for i in range(count)]
    for kind, offset, length, link in ((s[1], s[4], s[5], s[6]) for s in sections):
        if kind != 11:  # dynamic symbols
            continue
        for symbol in range(offset, offset + length, 24):
            name, _, _, section, value = struct.unpack_from("<IBBHQ", code, symbol)
            start = sections[link][4] + name
            if code[start : code.index(b"\0", start)].endswith(b".kd"):
                home = sections[section]
                yield code[home[4] + value - home[3] :][:64]


def wrong(architecture, whole, files):
    texts = [Path(file).read_bytes() for file in files]
    log, code = compiled(in_one(texts), [f"--gpu-architecture={architecture}", *asked["options"], *([] if whole else ["-fsyntax-only"])])
    if not whole:
        return log if "error:" in log else None  # there is no code, so it always says that something is wrong
    if log:
        return log
    kernels = list(descriptors(code))
    if len(kernels) < len(texts):
        return f"{len(kernels)} kernels of {len(texts)} texts"
    for kernel in kernels:
        (modes,), (properties,) = struct.unpack_from("<I", kernel, 48), struct.unpack_from("<H", kernel, 56)
        # Rounding to nearest; denormals of float32 and of float64 are neither read nor written as zeros.
        if modes >> 12 & 0xFF != 0xF0:
            return f"a kernel with the modes {modes >> 12 & 0xFF:#x}"
        if (properties >> 10 & 1) != architecture.startswith("gfx1"):
            return f"a kernel for the other size of wavefronts on {architecture}"
    return None


for job in asked["jobs"]:
    print(json.dumps(wrong(*job)), flush=True)
print(time.process_time())
