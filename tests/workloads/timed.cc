// SPDX-License-Identifier: BSD-2-Clause
//
// Functions with known arguments and lengths: `timed [N]` calls phase::run(bytes, &n) N times, with
// 100 and 5000 in turn, each at least 1 ms long; countdown(N) calls itself 8 times for each.
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace phase
{
__attribute__((noinline)) long run(long bytes, long *n)
{
	struct timespec wait = {0, 1000000};

	nanosleep(&wait, nullptr);
	++*n;
	return bytes > 1000 ? -1 : bytes;
}
}

extern "C" __attribute__((noinline)) int countdown(int n)
{
	int below = n ? countdown(n - 1) + 1 : 0;

	__asm__ volatile("" : "+r"(below)); // not a loop
	return below;
}

int main(int argc, char **argv)
{
	long n = 0, end = argc > 1 ? atol(argv[1]) : 100, sum = 0;

	while (n < end) {
		sum += phase::run(n % 2 ? 5000 : 100, &n);
		sum += countdown(8);
	}
	printf("%ld\n", sum);
	return 0;
}
