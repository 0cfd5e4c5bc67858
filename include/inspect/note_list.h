/* SPDX-License-Identifier: BSD-2-Clause */
/* What had to be less than asked, one line each: printed, and kept with the profile. */
#ifndef INSPECT_NOTE_LIST_H
#define INSPECT_NOTE_LIST_H

#include <inspect/array.h>

typedef ARRAY(char *) note_list;
void note_list_release(note_list *n);
int note_add(note_list *n, const char *fmt, ...) PRINTF(2, 3);
/* A note unless there is the same already. 0 or -ENOMEM. */
int note_add_once(note_list *n, const char *text);

#endif
