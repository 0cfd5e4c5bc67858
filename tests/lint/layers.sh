#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# base → model → elf → engines → capture → cmd → main: a file includes headers of its own folder and
# of layers to the left. Engines never include each other. layers.table says whose a contract is.
set -u
echo "layers: each #include points to the left, and no engine includes another"
python3 - <<'END'
import glob, os, re, sys

LEVEL = {"base": 0, "model": 1, "elf": 2, "capture": 4, "cmd": 5, "main": 6}
ENGINES = ["perf", "perfdata", "probe", "unwind", "symbol", "python", "gpu", "metrics", "trace", "text", "render"]
LEVEL.update(dict.fromkeys(ENGINES, 3))
TABLE = "tests/lint/layers.table"
OWNER = dict(line.split() for line in open(TABLE) if line.strip() and line[0] != "#")
INCLUDE = re.compile(r'\s*#\s*include\s+(?:<inspect/(\w+)\.h>|"([^"]+)")')
failed = False


def complain(path, line, text):
    global failed
    failed = True
    print(f"{path}:{line}: {text}")


def folder(path):
    parts = path.split("/")
    if parts[0] == "include":
        return OWNER.get(parts[-1][:-2])
    return "main" if path == "src/main.c" else parts[1]


def check(path, number, contract, private):
    here = folder(path)
    if private:
        embedded = re.sub(r"^(flame(?:_\w+)?)_(js|css)[.]h$", r"src/render/\1.\2", private)
        table = os.path.join(os.path.dirname(path), re.sub(r"[.]tsv[.]h$", ".tsv", private))
        known = [embedded, table, os.path.join(os.path.dirname(path), private)]
        if "/" in private or not (private.endswith(".skel.h") or any(map(os.path.exists, known))):
            complain(path, number, f'"{private}" is not in this folder')
        return
    there = OWNER.get(contract)
    if there is None:
        complain(path, number, f"<inspect/{contract}.h> is not in {TABLE}")
    elif there != here and LEVEL[there] >= LEVEL[here]:
        complain(path, number, f"{here} includes <inspect/{contract}.h> of {there}")


for path in sorted(glob.glob("include/inspect/*.h") + glob.glob("src/*.c") + glob.glob("src/*/*.[ch]")):
    if folder(path) not in LEVEL:
        complain(path, 1, f"belongs to no layer ({TABLE})")
        continue
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            found = INCLUDE.match(line)
            if found:
                check(path, number, *found.groups())
sys.exit(failed)
END
