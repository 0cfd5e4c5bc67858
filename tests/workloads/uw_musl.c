/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -static -specs=/usr/lib/x86_64-linux-musl/musl-gcc.specs */
#include "uw_deep.h"
