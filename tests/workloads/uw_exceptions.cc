/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/*
 * C++ exceptions in flight: most of the time goes to the unwinder of libgcc. Zeros are saved by every
 * frame: while a landing is prepared, one is read where a return address is expected.
 */
#include "uw.h"

#include <stdexcept>
#include <string>

struct guard {
	std::string text;

	explicit guard(int depth) : text(static_cast<size_t>(depth) + 20, 'x')
	{
	}
	~guard()
	{
		uw_sum += static_cast<long>(text.size());
	}
};

NOINLINE static void thrower(int depth, long zero)
{
	guard g(depth);
	long a = zero, b = zero, c = zero, d = zero;

	if (!depth)
		throw std::runtime_error("thrown");
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	thrower(depth - 1, zero);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv)) {
		try {
			thrower(40, 0);
		} catch (const std::exception &e) {
			uw_sum += e.what()[0];
		}
	}
	return 0;
}
