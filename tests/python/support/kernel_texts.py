"""The texts of kernels that the libraries in place of NVRTC and hipRTC have seen, for the vendors' own compilers."""
import re


def in_one(texts):
    """One text of several: each in a namespace of its own (what has C's names would be one function), its macros forgotten behind it."""
    def alone(i, text):
        forgotten = b"".join(b"#undef %s\n" % macro for macro in sorted(set(re.findall(rb"#define (\w+)", text))))
        return b"namespace n%d {\n%s\n}\n" % (i, text.replace(b'extern "C" __global__', b"__global__")) + forgotten

    return b"".join(alone(i, text) for i, text in enumerate(texts))


def has_more_than_numbers(text, more=rb"(?!)"):
    """Whether a text does more than load numbers, compute and store: shared and local arrays, what a user wrote, and `more`, a pattern."""
    body = re.sub(rb"^#.*|^typedef struct \{\n(?:  .*\n)*\} A;", b"", text, flags=re.MULTILINE)
    return bool(re.search(rb"\bLOCAL\b|__shared__|^ +[\w ]+ \w+\[\d+\]|" + more, body, re.MULTILINE)) or not re.search(rb"\bKERNEL\(\d+\) naru_", body)
