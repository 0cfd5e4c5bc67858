/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -static-pie */
#include "uw_deep.h"
