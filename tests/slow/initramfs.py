# SPDX-License-Identifier: BSD-2-Clause
"""initramfs.py FOLDER: the folder as a cpio archive (newc) on stdout, all of it root's."""
import os
import sys


def entry(name, mode, data=b"", device=(0, 0)):
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0]
    out = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    out += b"\0" * (-len(out) % 4) + data
    return out + b"\0" * (-len(out) % 4)


def main():
    root, out = sys.argv[1], sys.stdout.buffer
    out.write(entry("dev", 0o40755))
    out.write(entry("dev/console", 0o20600, device=(5, 1)))
    for folder, folders, files in sorted(os.walk(root)):
        inside = os.path.relpath(folder, root)
        for name in sorted(folders):
            out.write(entry(os.path.normpath(os.path.join(inside, name)), 0o40755))
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as file:
                out.write(entry(os.path.normpath(os.path.join(inside, name)), 0o100755, file.read()))
    out.write(entry("TRAILER!!!", 0))


main()
