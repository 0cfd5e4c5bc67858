/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"

size_t utf8_decode(const char *s, size_t n, uint32_t *ret_point)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)s;
	uint32_t point;
	size_t length;

	if (!n)
		return 0;
	if (p[0] < 0x80) {
		*ret_point = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] < 0xe0)
		length = 2;
	else if (p[0] >= 0xe0 && p[0] < 0xf0)
		length = 3;
	else if (p[0] >= 0xf0 && p[0] < 0xf5)
		length = 4;
	else
		return 0;
	if (n < length)
		return 0;

	point = p[0] & (0xff >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (p[i] & 0x3f);
	}
	if (point < smallest[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	*ret_point = point;
	return length;
}

bool utf8_is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c ||
	       point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}
