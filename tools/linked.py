"""Reports what a cross-compiled program or library is, and what it needs from its system, by reading the file.

    python tools/linked.py macos-arm64|macos-x64|windows-x64 FILE...

The exit status is 1 if a file is not for that system and processor, or needs a library that the system does not provide.

The formats: Apple's mach-o/loader.h and the code signatures of xnu's cs_blobs.h; Microsoft's "PE Format".
"""
import hashlib
import re
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

# Libraries that every installation provides.
BROUGHT = {
    "macos": re.compile(r"/usr/lib/libSystem\.B\.dylib|/usr/lib/libc\+\+\.1\.dylib|/usr/lib/libobjc\.A\.dylib"),
    "windows": re.compile(r"(api-ms-win-(crt|core)-[a-z0-9-]+|kernel32|ntdll|advapi32|bcrypt)\.dll", re.I),
}
PROCESSORS = {"macos-arm64": 0x0100000C, "macos-x64": 0x01000007, "windows-x64": 0x8664}


@dataclass
class Read:
    """What a file says of itself."""

    libraries: list = field(default_factory=list)
    # Library -> the names that are looked up in it; "" (Mach-O): in whatever library of the process has them.
    wanted: dict = field(default_factory=dict)
    shown: set = field(default_factory=set)  # the names that other libraries can look up
    oldest: tuple = ()  # the oldest version of the system
    paths: list = field(default_factory=list)  # Mach-O: its own name, and where it looks for libraries
    faults: list = field(default_factory=list)


def text_at(data, at):
    return data[at : data.index(b"\0", at)].decode()


def number_at(data, at):
    """An unsigned LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def bound(stream, libraries, wanted, weak=False):
    """Adds the names of a stream of binding opcodes (loader.h: BIND_OPCODE_...) to `wanted`."""
    at, ordinal, name = 0, 0, ""
    while at < len(stream):
        opcode, low = stream[at] & 0xF0, stream[at] & 0x0F
        at += 1
        if opcode == 0x10:  # the library, by its number
            ordinal = low
        elif opcode == 0x20:
            ordinal, at = number_at(stream, at)
        elif opcode == 0x30:  # 0: this file, -1: the program, -2: whatever library has it
            ordinal = low - 16 if low else 0
        elif opcode == 0x40:
            name = text_at(stream, at)
            at += len(name) + 1
        elif opcode in (0x60, 0x70, 0x80, 0xA0):  # an addend, a place, a distance
            _, at = number_at(stream, at)
        elif opcode == 0xC0:
            _, at = number_at(stream, at)
            _, at = number_at(stream, at)
        if opcode in (0x90, 0xA0, 0xB0, 0xC0) and not weak:
            library = libraries[ordinal - 1] if ordinal > 0 else ""
            if ordinal:
                wanted.setdefault(library, set()).add(name)


def exported(trie, at=0, before=""):
    """The names in a trie of exports."""
    size, here = number_at(trie, at)
    names = {before} if size else set()
    here += size
    children, here = trie[here], here + 1
    for _ in range(children):
        edge = text_at(trie, here)
        below, here = number_at(trie, here + len(edge) + 1)
        names |= exported(trie, below, before + edge)
    return names


def signed(data, start, size):
    """Why a code signature does not fit its file; "" if it does. The hash of each page is compared."""
    magic, _, count = struct.unpack_from(">3I", data, start)
    if magic != 0xFADE0CC0:
        return "its code signature is none"
    for i in range(count):
        at = start + struct.unpack_from(">2I", data, start + 12 + 8 * i)[1]
        if struct.unpack_from(">I", data, at)[0] != 0xFADE0C02:  # CodeDirectory
            continue
        _, _, _, _, hashes, _, _, pages, limit, width, kind, _, page = struct.unpack_from(">9I4B", data, at)
        if kind != 2 or width != 32:
            return f"its code signature has hashes of kind {kind}, not SHA-256"
        if limit != start or pages != -(-limit >> page):
            return f"its code signature is for {limit} bytes in {pages} pages, not for the {start} before it"
        for i in range(pages):
            own = hashlib.sha256(data[i << page : min(limit, (i + 1) << page)]).digest()
            if data[at + hashes + 32 * i : at + hashes + 32 * (i + 1)] != own:
                return f"page {i} is not the one that was signed"
        return "" if start + size <= len(data) else "its code signature is cut off"
    return "its code signature has no hashes"


def mach_o(data, wanted_processor):
    """What a program or library for macOS says; None if it is none for that processor."""
    magic, processor, _, kind, count = struct.unpack_from("<5I", data)
    if magic != 0xFEEDFACF or processor != wanted_processor or kind not in (2, 6, 8):  # MH_EXECUTE, MH_DYLIB, MH_BUNDLE
        return None
    read, at, streams, signature = Read(), 32, [], None
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        command &= 0x7FFFFFFF
        if command in (0xC, 0x18, 0x1F):  # LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_REEXPORT_DYLIB
            read.libraries.append(text_at(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command in (0xD, 0x1C):  # LC_ID_DYLIB, LC_RPATH
            read.paths.append(text_at(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif command == 0x32:  # LC_BUILD_VERSION
            platform, oldest = struct.unpack_from("<2I", data, at + 8)
            read.oldest = (oldest >> 16, oldest >> 8 & 0xFF)
            if platform != 1:
                read.faults.append(f"it is for Apple's platform {platform}, not for macOS")
        elif command == 0x22:  # LC_DYLD_INFO
            places = struct.unpack_from("<10I", data, at + 8)
            streams = [data[start : start + length] for start, length in zip(places[::2], places[1::2])]
        elif command == 0x1D:  # LC_CODE_SIGNATURE
            signature = struct.unpack_from("<2I", data, at + 8)
        elif command in (0x33, 0x34):  # LC_DYLD_EXPORTS_TRIE, LC_DYLD_CHAINED_FIXUPS
            read.faults.append("it has chained fixups, which this does not read")
        at += size
    if streams:
        _, binds, weak, lazy, exports = streams
        for stream, is_weak in ((binds, False), (weak, True), (lazy, False)):
            bound(stream, read.libraries, read.wanted, is_weak)
        read.shown = exported(exports) if exports else set()
    if signature:
        read.faults += filter(None, [signed(data, *signature)])
    elif wanted_processor == PROCESSORS["macos-arm64"]:
        read.faults.append("it has no code signature, without which it does not run")
    return read


def pe(data, wanted_processor):
    """What a program or library for Windows says; None if it is none for that processor."""
    header = struct.unpack_from("<I", data, 0x3C)[0]
    if data[:2] != b"MZ" or data[header : header + 4] != b"PE\0\0":
        return None
    machine, sections = struct.unpack_from("<2H", data, header + 4)
    optional = header + 24
    if machine != wanted_processor or struct.unpack_from("<H", data, optional)[0] != 0x20B:
        return None
    table = optional + struct.unpack_from("<H", data, header + 20)[0]
    places = [struct.unpack_from("<4I", data, table + 40 * i + 8) for i in range(sections)]

    def offset(address):
        return next(address - start + raw for size, start, filled, raw in places if start <= address < start + max(size, filled))

    read = Read(oldest=struct.unpack_from("<2H", data, optional + 48))
    directories = [struct.unpack_from("<2I", data, optional + 112 + 8 * i)[0] for i in range(struct.unpack_from("<I", data, optional + 108)[0])]
    exports, imports = (directories + [0, 0])[:2]
    if exports:
        start = offset(exports)
        count = struct.unpack_from("<I", data, start + 24)[0]
        for place in struct.unpack_from(f"<{count}I", data, offset(struct.unpack_from("<I", data, start + 32)[0])) if count else ():
            read.shown.add(text_at(data, offset(place)))
    at = offset(imports) if imports else None
    while at is not None and (name := struct.unpack_from("<I", data, at + 12)[0]):
        library = text_at(data, offset(name))
        read.libraries.append(library)
        entry = offset(lookups) if (lookups := struct.unpack_from("<I", data, at)[0]) else None
        while entry is not None and (place := struct.unpack_from("<Q", data, entry)[0]):
            by_number = place >> 63
            read.wanted.setdefault(library, set()).add(f"#{place & 0xFFFF}" if by_number else text_at(data, offset(place) + 2))
            entry += 8
        at += 20
    return read


def read(system, path):
    """What the file says of itself; None if it is no program or library for that system."""
    try:
        reader = mach_o if system.startswith("macos") else pe
        return reader(Path(path).read_bytes(), PROCESSORS[system])
    except (struct.error, ValueError, StopIteration, IndexError):
        return None


def trouble(system, path, also=()):
    """Describes what is wrong with the file; "" if nothing is. also: names of further libraries that it may want."""
    found = read(system, path)
    if found is None:
        return f"{path} is no program for {system}: it begins with {Path(path).read_bytes()[:8].hex(' ')}"
    foreign = sorted({each for each in found.libraries if not BROUGHT[system.partition("-")[0]].fullmatch(each) and each not in also})
    faults = [*found.faults, *([f"it wants libraries that {system} does not bring: {', '.join(foreign)}"] if foreign else [])]
    return f"{path}: {'; '.join(faults)}" if faults else ""


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
