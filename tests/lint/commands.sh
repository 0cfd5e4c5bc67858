#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A command is complete with its man page and its test, and both say the same about its usage.
set -u
echo "commands: each has a man page and a test; --help and SYNOPSIS have the same usage lines"
O=${O:-build} python3 - <<'END'
import os, re, subprocess, sys

TABLE = "src/cmd/commands.c"
failed = False


def complain(path, line, text):
    global failed
    failed = True
    print(f"{path}:{line}: {text}")


def plain(markup):
    """A line of scdoc without its *bold* and _underlined_ marks and its line breaks."""
    return " ".join(re.sub(r"\\(.)|[*_]|\+\+$", lambda m: m.group(1) or "", markup.strip()).split())


def synopsis(path):
    """The usage lines of a man page; the number of the heading's line."""
    lines, start = [], 0
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            if line.startswith("# "):
                if start:
                    break
                start = number if line.strip() == "# SYNOPSIS" else 0
            elif start and line.strip():
                lines.append(plain(line))
    return lines, start or 1


def usage(name):
    """The usage lines of --help: everything up to the first empty line."""
    run = subprocess.run([os.environ["O"] + "/inspect", name, "--help"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=20)
    if run.returncode:
        return None
    text = run.stdout.split("\n\n")[0]
    return [" ".join(re.sub(r"^(usage:|or:)", "", line.strip()).split()) for line in text.splitlines()]


if not os.path.exists(TABLE):
    complain(TABLE, 1, "missing")
    sys.exit(1)
rows = [(number, match.group(1).replace("_", "-"))
        for number, line in enumerate(open(TABLE, encoding="utf-8"), 1)
        for match in re.finditer(r"&command_(\w+)", line)]
if not rows:
    complain(TABLE, 1, "no rows of the form &command_NAME")
for number, name in rows:
    page = f"man/inspect-{name}.1.scd"
    if not os.path.exists(f"tests/cmd/{name}.t"):
        complain(TABLE, number, f"{name} has no tests/cmd/{name}.t")
    if not os.path.exists(page):
        complain(TABLE, number, f"{name} has no {page}")
        continue
    said, line = synopsis(page)
    helped = usage(name)
    if helped is None:
        complain(TABLE, number, f"`inspect {name} --help` fails")
    elif said != helped or not said:
        complain(page, line, "SYNOPSIS and --help differ")
        print("  man page:", *said, sep="\n    ")
        print("  --help:", *helped, sep="\n    ")
sys.exit(failed)
END
