"""Reports what a cross-compiled program is, and which libraries it needs from its system, by reading the file.

    python tools/linked.py macos-arm64|windows-x64 FILE...

The exit status is 1 if a file is not for that system and processor, or needs a library that the system does not provide.
"""
import re
import struct
import sys
from pathlib import Path

# Libraries that every installation provides.
BROUGHT = {
    "macos-arm64": re.compile(r"/usr/lib/libSystem\.B\.dylib|/usr/lib/libc\+\+\.1\.dylib|/usr/lib/libobjc\.A\.dylib"),
    "windows-x64": re.compile(r"(api-ms-win-(crt|core)-[a-z0-9-]+|kernel32|ntdll|advapi32|bcrypt)\.dll", re.I),
}


def text_at(data, at):
    return data[at : data.index(b"\0", at)].decode()


def mach_o(data):
    """The libraries it links, if it is a program or library for macOS on arm64; else None."""
    magic, processor, _, kind, count = struct.unpack_from("<5I", data)
    if magic != 0xFEEDFACF or processor != 0x0100000C or kind not in (2, 6, 8):  # MH_EXECUTE, MH_DYLIB, MH_BUNDLE
        return None
    libraries, at = [], 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        if command & 0x7FFFFFFF in (0xC, 0x18, 0x1F):  # LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB
            libraries.append(text_at(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        at += size
    return libraries


def pe(data):
    """The libraries it links, if it is a program or library for Windows on x86-64; else None."""
    header = struct.unpack_from("<I", data, 0x3C)[0]
    if data[:2] != b"MZ" or data[header : header + 4] != b"PE\0\0":
        return None
    machine, sections = struct.unpack_from("<2H", data, header + 4)
    optional = header + 24
    if machine != 0x8664 or struct.unpack_from("<H", data, optional)[0] != 0x20B:
        return None
    table = optional + struct.unpack_from("<H", data, header + 20)[0]
    places = [struct.unpack_from("<4I", data, table + 40 * i + 8) for i in range(sections)]

    def offset(address):
        return next(address - start + raw for size, start, filled, raw in places if start <= address < start + max(size, filled))

    imports = struct.unpack_from("<I", data, optional + 112 + 8)[0]
    libraries = []
    at = offset(imports) if imports else None
    while at is not None and (name := struct.unpack_from("<I", data, at + 12)[0]):
        libraries.append(text_at(data, offset(name)))
        at += 20
    return libraries


def trouble(system, path):
    """Describes what is wrong with the file; "" if nothing is."""
    data = Path(path).read_bytes()
    try:
        libraries = {"macos-arm64": mach_o, "windows-x64": pe}[system](data)
    except (struct.error, ValueError, StopIteration):
        libraries = None
    if libraries is None:
        return f"{path} is no program for {system}: it begins with {data[:8].hex(' ')}"
    foreign = sorted({each for each in libraries if not BROUGHT[system].fullmatch(each)})
    return f"{path} wants libraries that {system} does not bring: {', '.join(foreign)}" if foreign else ""


def main(system, *paths):
    troubles = [found for path in paths if (found := trouble(system, path))]
    for found in troubles:
        print(f"naru: {found}", file=sys.stderr)
    if troubles or not paths:
        sys.exit(1)
    names = ", ".join(sorted(Path(path).name for path in paths))
    print(f"naru: for {system}: {names}. Linked, of the right format, and in want of the system's own libraries only.")


if __name__ == "__main__":
    main(*sys.argv[1:])
