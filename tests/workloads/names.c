/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names SECONDS: one thread for each of a list of hostile names, each burning CPU in burn_named in
 * turn with the others. Prints `TID HEX` of each name.
 */
#include "cpu_time.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* At most 15 bytes: what a thread's name holds. */
static const char *const names[] = {
	"semi;colon",      "new\nline",          "paren) R 1 (x", "<b>&\"'</b>", "\033[31mred\033[0m",
	"bad\xff\xc3\x28", "",                   "two  spaces ",  "tab\there",   "\xe2\x80\xaertl",
	"]]><script>",     "\033]0;title\a",     "back\\slash",   "100 200",     "caf\xc3\xa9",
	"\xf0\x9f\x94\xa5 fire", "=cmd()",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static uint64_t end_ns;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void burn_named(void)
{
	volatile uint64_t x = 1;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		for (int i = 0; i < 20000; i++)
			x = x * 0x343fd + 0x269ec3;
}

static void *run(void *arg)
{
	const char *name = arg;

	prctl(PR_SET_NAME, name);
	pthread_mutex_lock(&print_lock);
	printf("%d ", (int)gettid());
	for (const char *c = name; *c; c++)
		printf("%02x", (unsigned char)*c);
	printf("\n");
	pthread_mutex_unlock(&print_lock);
	burn_named();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[NAMES];

	end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)((argc > 1 ? atof(argv[1]) : 1) * 1e9);
	for (int i = 0; i < NAMES; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)names[i]))
			return 1;
	for (int i = 0; i < NAMES; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
