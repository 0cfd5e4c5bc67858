/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer */
/* The same without frame pointers. */
#include "shares.c"
