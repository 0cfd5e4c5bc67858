/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -no-pie */
#define NAME turn_a
#define FRAME_BYTES 64
#define PROGRAM
#include "uw_plug.h"
