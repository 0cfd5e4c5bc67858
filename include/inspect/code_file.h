/* SPDX-License-Identifier: BSD-2-Clause */
/* From what is mapped to the file that it was mapped from. */
#ifndef INSPECT_CODE_FILE_H
#define INSPECT_CODE_FILE_H

#include <inspect/elf_file.h>
#include <inspect/process.h>

/* The image of the vdso that this process has mapped. 0 or -ENOENT. */
int vdso_open(struct elf_file **ret);

/*
 * The file of a dso, checked to be the one that was recorded: the running file, the live process's
 * mapping, the path, perf's cache, in that order. 0, -ESTALE (the running file has been written
 * anew, or the path holds another file now), or the errno of opening the path.
 */
int code_file_open(const struct dso *d, bool local_host, struct elf_file **ret);

#endif
