/* SPDX-License-Identifier: BSD-2-Clause */
/* What the printers of arguments share. */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H

#include <inspect/syscall_text.h>

struct arg_text {
	const struct syscall_event *e;
	const uint8_t *kinds; /* of all arguments: SYSCALL_ARGS of them */
	unsigned i;           /* the argument */
	uint64_t v;
	struct strbuf *out;
};

/* The n-th capture of that argument and kind, or NULL. */
const struct syscall_capture *capture_find(const struct syscall_event *e, unsigned arg,
					   enum syscall_capture_kind kind, unsigned n);

/* Bytes of a captured struct into one of that size, zeros after its end; false: none captured. */
bool capture_copy(const struct syscall_event *e, unsigned arg, void *to, size_t n_bytes);

static inline bool call_failed(const struct syscall_event *e)
{
	return e->result < 0 && e->result >= -4095;
}

/* "NULL" or "0x…" */
void pointer_text(uint64_t v, struct strbuf *out);

/* A C string in quotes, "..." after it when it was truncated. Bytes of text that is valid UTF-8 and
 * can be shown stay; of binary data what is not ASCII becomes octal. */
void quoted_text(const void *s, size_t n, bool binary, bool truncated, struct strbuf *out);

/* A descriptor with its name: "3</etc/hostname>"; arg is SYSCALL_RESULT for the result. */
void fd_text(const struct syscall_event *e, unsigned arg, uint64_t v, struct strbuf *out);

void signal_text(int number, struct strbuf *out);

/* The one argument; of one that points somewhere and was not captured, the address. */
void arg_text(const struct arg_text *a);

/* structs.c: false when nothing was captured. */
bool struct_text(const struct arg_text *a);

/* sockets.c */
void sockaddr_text(const void *address, size_t n_bytes, struct strbuf *out);
bool message_text(const struct arg_text *a);
bool iovecs_text(const struct arg_text *a);

/* Which of the arguments are printed, as bits: later ones may depend on earlier ones. */
uint8_t args_shown(const struct syscall_event *e, const uint8_t *kinds);

/* formats.c: the names of arguments, borrowed; 0: not known. is_signed: shown as an int. */
struct format_arg {
	char name[24];
	bool is_pointer, is_signed;
};
unsigned format_args(struct syscall_formats *f, const char *call,
		     struct format_arg ret[SYSCALL_ARGS]);

#endif
