"""Fetches, verifies and unpacks the sources of naru's dependencies from Debian's archive, for systems whose libraries Debian does not have.

    python tools/sources.py FOLDER

The versions are those of Debian 12, which all other builds use.
"""
import hashlib
import io
import shutil
import sys
import tarfile
import urllib.request
from pathlib import Path

ARCHIVES = ("https://deb.debian.org/debian/pool/main/", "https://snapshot.debian.org/archive/debian/20240701T000000Z/pool/main/")
SOURCES = {
    "asmjit": ("a/asmjit/asmjit_0.0~git20221210.5b5b0b3.orig.tar.xz", "c05b9b913f3be6f22d1452cfa6a7f87372090242cc9526685d02880277b7641f"),
    "fmt": ("f/fmtlib/fmtlib_9.1.0+ds1.orig.tar.gz", "84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583"),
    "highway": ("h/highway/highway_1.0.3.orig.tar.gz", "566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e"),
    "json": ("n/nlohmann-json3/nlohmann-json3_3.11.2.orig.tar.gz", "d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273"),
}


def fetched(path, checksum):
    troubles = []
    for archive in ARCHIVES:
        try:
            with urllib.request.urlopen(archive + path, timeout=60) as answer:
                data = answer.read()
        except OSError as error:
            troubles.append(f"{archive}{path}: {error}")
            continue
        found = hashlib.sha256(data).hexdigest()
        if found == checksum:
            return data
        troubles.append(f"{archive}{path}: its SHA-256 is {found}, and {checksum} was expected")
    sys.exit("\n".join(troubles))


def main(folder):
    for name, (path, checksum) in SOURCES.items():
        target = folder / name
        stamp = target / f".{checksum}"
        if stamp.exists():
            continue
        data = fetched(path, checksum)
        part = folder / f".{name}"
        for old in (part, target):
            shutil.rmtree(old, ignore_errors=True)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(part, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(part)
        inner = list(part.iterdir())
        (inner[0] if len(inner) == 1 else part).rename(target)
        shutil.rmtree(part, ignore_errors=True)
        stamp.touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
