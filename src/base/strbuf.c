/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/strbuf.h>
#include <stdarg.h>

void strbuf_release(struct strbuf *b)
{
	free(b->v);
	*b = (struct strbuf){0};
}

void strbuf_clear(struct strbuf *b)
{
	b->n = 0;
	b->failed = false;
	if (b->v)
		b->v[0] = '\0';
}

/* Room for n more bytes and the NUL. */
static bool strbuf_reserve(struct strbuf *b, size_t n)
{
	size_t want, cap;
	char *moved;

	if (b->failed)
		return false;
	if (n >= SIZE_MAX / 4 - b->n) {
		b->failed = true;
		return false;
	}
	want = b->n + n + 1;
	if (want <= b->cap)
		return true;
	cap = MAX(MAX(b->cap + b->cap / 2, want), (size_t)32);
	moved = realloc(b->v, cap);
	if (!moved) {
		b->failed = true;
		return false;
	}
	b->v = moved;
	b->cap = cap;
	return true;
}

void strbuf_add(struct strbuf *b, const char *s, size_t n)
{
	if (!strbuf_reserve(b, n))
		return;
	if (n)
		memcpy(b->v + b->n, s, n);
	b->n += n;
	b->v[b->n] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_putc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list args;
	int n;

	/* Mostly the first try fits; the second then has the exact room. */
	for (size_t room = 64;; room = (size_t)n) {
		if (!strbuf_reserve(b, room))
			return;
		va_start(args, fmt);
		n = vsnprintf(b->v + b->n, b->cap - b->n, fmt, args);
		va_end(args);
		if (n < 0) {
			b->v[b->n] = '\0';
			b->failed = true;
			return;
		}
		if ((size_t)n < b->cap - b->n)
			break;
	}
	b->n += (size_t)n;
}

const char *strbuf_str(const struct strbuf *b)
{
	return b->v ? b->v : "";
}

int strbuf_take(struct strbuf *b, char **ret)
{
	strbuf_add(b, "", 0);
	if (b->failed)
		return -ENOMEM;
	*ret = TAKE_PTR(b->v);
	*b = (struct strbuf){0};
	return 0;
}
