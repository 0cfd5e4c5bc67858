/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -static */
#include "uw_deep.h"
