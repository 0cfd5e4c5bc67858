/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/* C++ exceptions in flight: most of the time goes to the unwinder of libgcc. */
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

NOINLINE static void thrower(int depth)
{
	guard g(depth);

	if (!depth)
		throw std::runtime_error("thrown");
	thrower(depth - 1);
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv)) {
		try {
			thrower(40);
		} catch (const std::exception &e) {
			uw_sum += e.what()[0];
		}
	}
	return 0;
}
