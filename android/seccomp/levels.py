#!/usr/bin/env python3
"""Fills calls.txt in: from which API level on Android lets every app make the system calls that are named there.

Usage: levels.py BIONIC, a git clone of Android's C library (https://android.googlesource.com/platform/bionic) with its tags.
It keeps the names of calls.txt and writes the levels anew. The filter for apps allows SYSCALLS - BLOCKLIST + ALLOWLIST, as
libc/tools/genseccomp.py puts it together. A call counts from the level after the last one whose filter lacks it. Levels below
26 do not count, as Tributary needs Android 8. "-" is a call that the newest level lacks, or that the architecture has not.
"""
import re
import subprocess
import sys

VERSIONS = {
    26: "8.0.0", 27: "8.1.0", 28: "9.0.0", 29: "10.0.0", 30: "11.0.0", 31: "12.0.0", 32: "12.1.0", 33: "13.0.0", 34: "14.0.0", 35: "15.0.0",
}
# Android 16 has no tag in the clone that calls.txt is from: this is its branch's head in March 2025, two months before the release.
REVISIONS = {api: f"android-{v}_r1" for api, v in VERSIONS.items()} | {36: "731631f300090436d7f5df80d50b6275c8c60a93"}
CLASSES = {
    "armeabi-v7a": {"all", "lp32", "arm"},
    "arm64-v8a": {"all", "lp64", "arm64"},
    "x86_64": {"all", "lp64", "x86_64"},
}


def git(*args):
    return subprocess.run(["git", "-C", sys.argv[1], *args], check=True, capture_output=True, text=True).stdout


def calls(text, abi):
    found = set()
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            declared, archs = line.split("(")[0].split()[-1], line.rsplit(")", 1)[1]
            if CLASSES[abi] & set(archs.replace(",", " ").split()):
                name = declared.split(":")  # function[:call[:number for socketcall]]
                found.add((name[1] if len(name) > 1 else name[0]).split("|")[0])
    return found


def allowed(revision, abi):
    names = git("ls-tree", "--name-only", f"{revision}:libc").split()

    def union(pattern):
        return set().union(*(calls(git("show", f"{revision}:libc/{n}"), abi) for n in names if re.fullmatch(pattern, n)))

    return union(r"SYSCALLS\.TXT") - union(r"SECCOMP_BL(ACK|OCK)LIST(_APP|_COMMON)?\.TXT") | union(
        r"SECCOMP_(WHITE|ALLOW)LIST(_APP|_COMMON|_GLOBAL)?\.TXT"
    )


path = f"{sys.path[0]}/calls.txt"
with open(path) as f:
    lines = f.readlines()
head = [line for line in lines if line.startswith("#")]
wanted = sorted({line.split()[0] for line in lines if line.strip() and not line.startswith("#")})
levels = {abi: {api: allowed(revision, abi) for api, revision in REVISIONS.items()} for abi in CLASSES}


def since(name, abi):
    if name not in levels[abi][36]:
        return "-"
    return 1 + max((api for api, names in levels[abi].items() if name not in names), default=25)


with open(path, "w") as f:
    f.writelines(head)
    for name in wanted:
        print(name, *(since(name, abi) for abi in CLASSES), file=f)
