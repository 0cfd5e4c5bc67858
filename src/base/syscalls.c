/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/near_miss.h>
#include <inspect/syscalls.h>

#include "syscall_info.h"
#include "syscall_numbers.h"

static const struct {
	const char *name;
	uint32_t bit;
} classes[] = {
	{"file", SYSCALL_FILE},     {"desc", SYSCALL_DESC},     {"net", SYSCALL_NET},
	{"network", SYSCALL_NET},   {"memory", SYSCALL_MEMORY}, {"process", SYSCALL_PROCESS},
	{"signal", SYSCALL_SIGNAL}, {"ipc", SYSCALL_IPC},
};

static int by_name(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element); /* the name comes first in both tables */
}

const struct syscall_info *syscall_info_find(const char *name)
{
	return bsearch(name, syscall_info_table, syscall_info_count, sizeof(*syscall_info_table),
		       by_name);
}

bool syscall_moves_bytes(const struct syscall_info *info)
{
	static const char *const others[] = {"sendfile", "splice", "copy_file_range"};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (str_eq(info->name, others[i]))
			return true;
	if (info->args[0] != ARG_FD)
		return false;
	for (size_t i = 1; i < SYSCALL_ARGS && info->args[i] != ARG_END; i++) {
		uint8_t kind = info->args[i];

		if (kind == ARG_BUF || kind == ARG_BUF_OUT || kind == ARG_IOV ||
		    kind == ARG_IOV_OUT || kind == ARG_MSG || kind == ARG_MSG_OUT)
			return true;
	}
	return false;
}

bool syscall_is_timed_wait(const char *name)
{
	static const char *const names[] = {"futex",       "futex_time64",    "futex_wait",
					    "futex_waitv", "mq_timedreceive", "mq_timedsend"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

static const struct syscall_numbers *row_by_name(const char *name)
{
	return bsearch(name, syscall_numbers_table, syscall_numbers_count,
		       sizeof(*syscall_numbers_table), by_name);
}

/* NULL: that ABI has no such number. */
static const struct syscall_numbers *row_by_number(enum syscall_abi abi, uint32_t nr)
{
	const struct {
		const uint16_t *rows;
		size_t n;
	} abis[SYSCALL_ABIS] = {
#if defined(__x86_64__)
		[SYSCALL_NATIVE] = {syscall_rows_x86_64, syscall_rows_x86_64_count},
		[SYSCALL_I386] = {syscall_rows_i386, syscall_rows_i386_count},
		[SYSCALL_X32] = {syscall_rows_x32, syscall_rows_x32_count},
#elif defined(__aarch64__)
		[SYSCALL_NATIVE] = {syscall_rows_arm64, syscall_rows_arm64_count},
#endif
	};

	if (nr >= abis[abi].n || !abis[abi].rows[nr])
		return NULL;
	return &syscall_numbers_table[abis[abi].rows[nr] - 1];
}

static int number_in(const struct syscall_numbers *row, enum syscall_abi abi)
{
#if defined(__x86_64__)
	const int16_t numbers[] = {
		[SYSCALL_NATIVE] = row->x86_64,
		[SYSCALL_I386] = row->i386,
		[SYSCALL_X32] = row->x32,
	};
#elif defined(__aarch64__)
	const int16_t numbers[] = {
		[SYSCALL_NATIVE] = row->arm64,
		[SYSCALL_I386] = -1,
		[SYSCALL_X32] = -1,
	};
#else
#error "the numbers of this machine's system calls are not known"
#endif
	return numbers[abi];
}

const char *syscall_name(enum syscall_abi abi, uint32_t nr, char buf[SYSCALL_NAME_BYTES])
{
	const struct syscall_numbers *row = row_by_number(abi, nr);

	if (row)
		return row->name;
	snprintf(buf, SYSCALL_NAME_BYTES, "syscall_%u", nr);
	return buf;
}

/* The N of syscall_N, or -ENOENT. */
static int plain_number(const char *name)
{
	char *end;
	long v;

	if (!str_starts(name, "syscall_") || name[8] < '0' || name[8] > '9')
		return -ENOENT;
	v = strtol(name + 8, &end, 10);
	return *end || v >= SYSCALL_SET_NUMBERS ? -ENOENT : (int)v;
}

int syscall_number(enum syscall_abi abi, const char *name)
{
	const struct syscall_numbers *row = row_by_name(name);

	if (!row)
		return plain_number(name);
	return number_in(row, abi) >= 0 ? number_in(row, abi) : -ENOENT;
}

uint32_t syscall_numbers_end(enum syscall_abi abi)
{
	int end = 0;

	for (size_t i = 0; i < syscall_numbers_count; i++)
		end = MAX(end, number_in(&syscall_numbers_table[i], abi) + 1);
	return (uint32_t)end;
}

const char *syscall_abi_suffix(enum syscall_abi abi)
{
	static const char *const suffixes[SYSCALL_ABIS] = {
		[SYSCALL_NATIVE] = "",
		[SYSCALL_I386] = " (i386)",
		[SYSCALL_X32] = " (x32)",
	};

	return suffixes[abi];
}

uint32_t syscall_classes(enum syscall_abi abi, uint32_t nr)
{
	const struct syscall_numbers *row = row_by_number(abi, nr);
	const struct syscall_info *info = row ? syscall_info_find(row->name) : NULL;

	return info ? info->classes : 0;
}

uint32_t syscall_class_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (str_eq(classes[i].name, name))
			return classes[i].bit;
	return 0;
}

const char *syscall_class_name(size_t index)
{
	return index < ARRAY_SIZE(classes) ? classes[index].name : NULL;
}

/* --- sets ------------------------------------------------------------------------------------- */

uint32_t syscall_set_count(const struct syscall_set *s)
{
	uint32_t n = 0;

	for (size_t abi = 0; abi < SYSCALL_ABIS; abi++)
		for (size_t i = 0; i < SYSCALL_SET_NUMBERS / 64; i++)
			n += (uint32_t)__builtin_popcountll(s->bits[abi][i]);
	return n;
}

static bool set_add(struct syscall_set *s, const char *name)
{
	bool found = false;

	for (size_t abi = 0; abi < SYSCALL_ABIS; abi++) {
		int nr = syscall_number((enum syscall_abi)abi, name);

		if (nr < 0)
			continue;
		s->bits[abi][nr / 64] |= 1ULL << (nr % 64);
		found = true;
	}
	return found;
}

static void set_add_class(struct syscall_set *s, uint32_t bits)
{
	for (size_t i = 0; i < syscall_info_count; i++)
		if (syscall_info_table[i].classes & bits)
			set_add(s, syscall_info_table[i].name);
}

static int unknown_word(const char *word, struct diag *d)
{
	struct near_misses near = {.word = word};

	if (*word == '%') {
		diag_set(d, -EINVAL, "no class of system calls is called '%s'", word);
		diag_fix(d, "one of %%file, %%desc, %%net, %%memory, %%process, %%signal, %%ipc");
		return -EINVAL;
	}
	for (size_t i = 0; i < syscall_numbers_count; i++)
		near_misses_add(&near, syscall_numbers_table[i].name);
	diag_set(d, -EINVAL, "no system call is called '%s'", word);
	near_misses_advise(&near, "", d);
	return -EINVAL;
}

/* One word between commas. */
static int add_word(struct syscall_set *s, const char *word, struct diag *d)
{
	uint32_t bits = *word == '%' ? syscall_class_find(word + 1) : 0;

	if (str_eq(word, "all"))
		memset(s, 0xff, sizeof(*s));
	else if (bits)
		set_add_class(s, bits);
	else if (!set_add(s, word))
		return unknown_word(word, d);
	return 0;
}

int syscall_set_parse(const char *text, struct syscall_set *ret, struct diag *d)
{
	struct syscall_set s = {0};
	bool inverted;

	if (str_starts(text, "trace="))
		text += strlen("trace=");
	inverted = *text == '!';
	text += inverted;
	for (;;) {
		size_t n = strcspn(text, ",");
		char word[SYSCALL_NAME_BYTES];
		int err;

		snprintf(word, sizeof(word), "%.*s", (int)MIN(n, sizeof(word) - 1), text);
		err = add_word(&s, word, d);
		if (err)
			return err;
		if (!text[n])
			break;
		text += n + 1;
	}
	for (size_t abi = 0; inverted && abi < SYSCALL_ABIS; abi++)
		for (size_t i = 0; i < SYSCALL_SET_NUMBERS / 64; i++)
			s.bits[abi][i] = ~s.bits[abi][i];
	*ret = s;
	return 0;
}
