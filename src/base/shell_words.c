/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/shell_words.h>

static bool is_control(unsigned char c)
{
	return c < ' ' || c == 0x7f;
}

static bool has_control(const char *word)
{
	for (; *word; word++)
		if (is_control((unsigned char)*word))
			return true;
	return false;
}

static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789@%_+=:,./-";

	return *word && word[strspn(word, plain)] == '\0';
}

static void put_escaped(struct strbuf *b, const char *word)
{
	strbuf_puts(b, "$'");
	for (; *word; word++) {
		if (*word == '\n')
			strbuf_puts(b, "\\n");
		else if (*word == '\t')
			strbuf_puts(b, "\\t");
		else if (is_control((unsigned char)*word))
			strbuf_printf(b, "\\%03o", (unsigned char)*word);
		else if (*word == '\'' || *word == '\\')
			strbuf_printf(b, "\\%c", *word);
		else
			strbuf_putc(b, *word);
	}
	strbuf_putc(b, '\'');
}

void shell_word_put(struct strbuf *b, const char *word)
{
	if (is_plain(word)) {
		strbuf_puts(b, word);
		return;
	}
	if (has_control(word)) {
		put_escaped(b, word);
		return;
	}
	strbuf_putc(b, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			strbuf_puts(b, "'\\''");
		else
			strbuf_putc(b, *word);
	}
	strbuf_putc(b, '\'');
}

void shell_words_put(struct strbuf *b, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		strbuf_putc(b, ' ');
		shell_word_put(b, words[i]);
	}
}
