/* SPDX-License-Identifier: BSD-2-Clause */
/* After cmocka.h. */
#ifndef SKIP_H
#define SKIP_H

/* Leaves the running test out. cmocka knows no reason and says `not ok N # SKIP name`: tests/run
 * makes `ok N - name # SKIP reason` of that and of this line. */
#define skip_because(...)                                                                          \
	do {                                                                                       \
		print_message("# skipped: " __VA_ARGS__);                                          \
		print_message("\n");                                                               \
		skip();                                                                            \
	} while (0)

#endif
