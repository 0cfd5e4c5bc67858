/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -gdwarf-4 */
#include "uw_deep.h"
