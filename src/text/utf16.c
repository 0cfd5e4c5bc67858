/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf16.h"

bool utf16_has_mark(const char *s, size_t n)
{
	return n >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0);
}

void utf8_skip_mark(const char **s, size_t *n)
{
	if (*n < 3 || memcmp(*s, "\xef\xbb\xbf", 3))
		return;
	*s += 3;
	*n -= 3;
}

static uint32_t load_unit(const unsigned char *s, bool big_endian)
{
	return big_endian ? (uint32_t)s[0] << 8 | s[1] : (uint32_t)s[1] << 8 | s[0];
}

static char *put_utf8(char *out, uint32_t point)
{
	if (point < 0x80) {
		*out++ = (char)point;
	} else if (point < 0x800) {
		*out++ = (char)(0xc0 | point >> 6);
		*out++ = (char)(0x80 | (point & 0x3f));
	} else if (point < 0x10000) {
		*out++ = (char)(0xe0 | point >> 12);
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	} else {
		*out++ = (char)(0xf0 | point >> 18);
		*out++ = (char)(0x80 | (point >> 12 & 0x3f));
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	}
	return out;
}

int utf16_to_utf8(const char *s, size_t n, char **ret, size_t *ret_n)
{
	const unsigned char *in = (const unsigned char *)s;
	bool big_endian = in[0] == 0xfe;
	/* Two bytes become at most three; a pair of four becomes four. */
	char *text = malloc(n / 2 * 3 + 1), *out = text;

	if (!text)
		return -ENOMEM;
	for (size_t i = 2; i + 1 < n; i += 2) {
		uint32_t point = load_unit(in + i, big_endian), low = 0;

		if (point >= 0xd800 && point < 0xdc00 && i + 3 < n)
			low = load_unit(in + i + 2, big_endian);
		if (low >= 0xdc00 && low < 0xe000) {
			point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
			i += 2;
		} else if (point >= 0xd800 && point < 0xe000) {
			point = 0xfffd;
		}
		out = put_utf8(out, point);
	}
	*ret = text;
	*ret_n = (size_t)(out - text);
	return 0;
}
