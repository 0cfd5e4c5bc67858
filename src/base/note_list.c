/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/note_list.h>
#include <stdarg.h>

void note_list_release(note_list *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->v[i]);
	array_release(n);
}

int note_add(note_list *n, const char *fmt, ...)
{
	char *text;
	va_list args;
	int len, err;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	err = array_push(n, text);
	if (err)
		free(text);
	return err;
}

int note_add_once(note_list *n, const char *text)
{
	for (size_t i = 0; i < n->n; i++)
		if (str_eq(n->v[i], text))
			return 0;
	return note_add(n, "%s", text);
}
