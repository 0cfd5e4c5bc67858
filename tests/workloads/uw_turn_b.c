/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -no-pie */
#define NAME turn_b
#define FRAME_BYTES 6000
#define PROGRAM
#include "uw_plug.h"
