/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -shared -fPIC */
#define NAME plug_b
#define NAME_TEXT "plug_b_run"
#define FRAME_BYTES 6000
#include "uw_plug.h"
