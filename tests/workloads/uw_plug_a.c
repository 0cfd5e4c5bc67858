/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -shared -fPIC */
#define NAME plug_a
#define NAME_TEXT "plug_a_run"
#define FRAME_BYTES 64
#include "uw_plug.h"
