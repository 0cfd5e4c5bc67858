/* cflags: -O2 -fomit-frame-pointer */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stages SECONDS [processes]: five threads (or processes) stage1 to stage5 in a row. The first one
 * sleeps; then each writes a byte for the next (pass_on), which waits for it in a read.
 */
#include "cpu_time.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAGES = 5, PERIOD_US = 5000 };

static int pipes[STAGES][2]; /* [i]: into stage i + 1; the first is unused */
static long rounds;

NOINLINE void pass_on(unsigned stage, char byte)
{
	if (stage + 1 < STAGES && write(pipes[stage + 1][1], &byte, 1) != 1)
		exit(1);
	__asm__ volatile(""); /* no tail call */
}

NOINLINE char wait_for_turn(unsigned stage)
{
	char byte = 'x';

	if (stage && read(pipes[stage][0], &byte, 1) != 1)
		exit(1);
	if (!stage)
		usleep(PERIOD_US);
	return byte;
}

static void *run(void *arg)
{
	unsigned stage = (unsigned)(uintptr_t)arg % STAGES;
	char name[16];

	snprintf(name, sizeof(name), "stage%u", stage + 1);
	prctl(PR_SET_NAME, name);
	for (long i = 0; i < rounds; i++)
		pass_on(stage, wait_for_turn(stage));
	return NULL;
}

int main(int argc, char **argv)
{
	bool processes = argc > 2 && !strcmp(argv[2], "processes");
	pthread_t threads[STAGES];

	if (argc < 2)
		return 1;
	rounds = (long)(atof(argv[1]) * 1e6 / PERIOD_US);
	for (int i = 0; i < STAGES; i++)
		if (pipe(pipes[i]))
			return 1;
	for (uintptr_t i = 0; i < STAGES; i++) {
		if (!processes) {
			if (pthread_create(&threads[i], NULL, run, (void *)i))
				return 1;
		} else if (!fork()) {
			run((void *)i);
			return 0;
		}
	}
	for (int i = 0; i < STAGES; i++)
		if (processes)
			wait(NULL);
		else
			pthread_join(threads[i], NULL);
	return 0;
}
