/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer */
#include "uw_deep.h"
