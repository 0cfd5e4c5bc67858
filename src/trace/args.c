/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/term.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "flags.h"
#include "text.h"

const struct syscall_capture *capture_find(const struct syscall_event *e, unsigned arg,
					   enum syscall_capture_kind kind, unsigned n)
{
	for (uint32_t i = 0; i < e->n_captures; i++) {
		const struct syscall_capture *c = &e->captures[i];

		if (c->arg == arg && c->kind == kind && !n--)
			return c;
	}
	return NULL;
}

bool capture_copy(const struct syscall_event *e, unsigned arg, void *to, size_t n_bytes)
{
	const struct syscall_capture *c = capture_find(e, arg, CAPTURE_MEMORY, 0);

	if (!c)
		return false;
	memset(to, 0, n_bytes);
	memcpy(to, c->data, MIN(n_bytes, (size_t)c->n_bytes));
	return true;
}

void pointer_text(uint64_t v, struct strbuf *out)
{
	if (v)
		strbuf_printf(out, "0x%llx", (unsigned long long)v);
	else
		strbuf_puts(out, "NULL");
}

/* --- texts ------------------------------------------------------------------------------------ */

static void octal(unsigned char c, bool digit_follows, struct strbuf *out)
{
	strbuf_printf(out, digit_follows ? "\\%03o" : "\\%o", c);
}

/* The length of what is shown as it is: bytes above ASCII that term_escape may leave alone. */
static size_t high_bytes(const unsigned char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] >= 0x80)
		i++;
	return i;
}

void quoted_text(const void *text, size_t n, bool binary, bool truncated, struct strbuf *out)
{
	static const char from[] = "\t\n\v\f\r\"\\", to[] = "tnvfr\"\\";
	const unsigned char *s = text;

	strbuf_putc(out, '"');
	for (size_t i = 0; i < n; i++) {
		const char *at = s[i] ? strchr(from, s[i]) : NULL;

		if (at) {
			strbuf_putc(out, '\\');
			strbuf_putc(out, to[at - from]);
		} else if (s[i] >= 0x20 && s[i] < 0x7f) {
			strbuf_putc(out, (char)s[i]);
		} else if (s[i] >= 0x80 && !binary) {
			size_t run = high_bytes(s + i, n - i);

			term_escape(out, (const char *)s + i, run);
			i += run - 1;
		} else {
			octal(s[i], i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '9', out);
		}
	}
	strbuf_puts(out, truncated ? "\"..." : "\"");
}

void fd_text(const struct syscall_event *e, unsigned arg, uint64_t v, struct strbuf *out)
{
	const struct syscall_capture *name = capture_find(e, arg, CAPTURE_NAME, 0);

	strbuf_printf(out, "%d", (int)v);
	if (!name)
		return;
	strbuf_putc(out, '<');
	term_escape(out, name->data, name->n_bytes);
	strbuf_puts(out, name->truncated ? "...>" : ">");
}

static void print_dirfd(const struct arg_text *a)
{
	const struct syscall_capture *folder = capture_find(a->e, a->i + 1, CAPTURE_FOLDER, 0);

	if ((int)a->v == AT_FDCWD)
		strbuf_puts(a->out, "AT_FDCWD");
	else
		strbuf_printf(a->out, "%d", (int)a->v);
	if (!folder)
		return;
	strbuf_putc(a->out, '<');
	term_escape(a->out, folder->data, folder->n_bytes);
	strbuf_puts(a->out, folder->truncated ? "...>" : ">");
}

/* A path or another string. When the call has no descriptor of the folder it is shown before it, as
 * the call's own text would not tell where the file is. */
static bool print_string(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);
	size_t n = c ? c->n_bytes : 0;
	bool dirfd = a->i && a->kinds[a->i - 1] == ARG_DIRFD;
	const struct syscall_capture *folder =
		dirfd ? NULL : capture_find(a->e, a->i, CAPTURE_FOLDER, 0);

	if (!c)
		return false;
	if (folder) {
		strbuf_putc(a->out, '<');
		term_escape(a->out, folder->data, folder->n_bytes);
		strbuf_putc(a->out, '>');
	}
	if (n && !((const char *)c->data)[n - 1])
		n--;
	quoted_text(c->data, n, false, c->truncated, a->out);
	return true;
}

static bool print_bytes(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);

	if (!c)
		return false;
	quoted_text(c->data, c->n_bytes, a->kinds[a->i] != ARG_PATH_OUT, c->truncated, a->out);
	return true;
}

static bool print_argv(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_COUNT, 0), *item;
	uint64_t n = 0;

	if (!c)
		return false;
	memcpy(&n, c->data, MIN(sizeof(n), (size_t)c->n_bytes));
	if (a->kinds[a->i] == ARG_ENVP) {
		pointer_text(a->v, a->out);
		strbuf_printf(a->out, n == 1 ? " /* %llu%s var */" : " /* %llu%s vars */",
			      (unsigned long long)n, c->truncated ? "+" : "");
		return true;
	}
	strbuf_putc(a->out, '[');
	for (unsigned i = 0; (item = capture_find(a->e, a->i, CAPTURE_ITEM, i)); i++) {
		size_t bytes = item->n_bytes;

		if (bytes && !((const char *)item->data)[bytes - 1])
			bytes--;
		strbuf_puts(a->out, i ? ", " : "");
		quoted_text(item->data, bytes, false, item->truncated, a->out);
	}
	strbuf_puts(a->out, c->truncated ? ", ...]" : "]");
	return true;
}

/* --- numbers ---------------------------------------------------------------------------------- */

void signal_text(int number, struct strbuf *out)
{
	const char *name = number > 0 && number < 32 ? sigabbrev_np(number) : NULL;

	if (name)
		strbuf_printf(out, "SIG%s", name);
	else if (number >= 32 && number <= 64)
		strbuf_printf(out, "SIGRT_%d", number - 32);
	else
		strbuf_printf(out, "%d", number);
}

static void print_ioctl(uint32_t cmd, struct strbuf *out)
{
	static const char *const directions[] = {"_IOC_NONE", "_IOC_WRITE", "_IOC_READ",
						 "_IOC_READ|_IOC_WRITE"};
	const char *name = flag_choice(ioctl_names, cmd);

	if (name)
		strbuf_puts(out, name);
	else if (cmd >> 8)
		strbuf_printf(out, "_IOC(%s, 0x%x, %#x, %#x)", directions[_IOC_DIR(cmd)],
			      _IOC_TYPE(cmd), _IOC_NR(cmd), _IOC_SIZE(cmd));
	else
		strbuf_printf(out, "%#x", cmd);
}

/* The flags stand before the signal that the parent gets at the end. */
static void print_clone(uint64_t v, struct strbuf *out)
{
	const struct flag_table *t = flag_table_of(ARG_CLONE);
	struct flag_table bits = {.bits = t->bits};
	uint64_t sign = v & t->choice_mask, flags = v & ~t->choice_mask;

	if (flags || !sign)
		flags_text(&bits, flags, out);
	if (!sign)
		return;
	strbuf_puts(out, flags ? "|" : "");
	signal_text((int)sign, out);
}

/* "FUTEX_WAIT_PRIVATE", "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME" */
static void print_futex_op(uint32_t v, struct strbuf *out)
{
	const struct flag_table *t = flag_table_of(ARG_FUTEX_OP);
	const char *name = flag_choice(t->choices, v & t->choice_mask);
	uint32_t private = 128, clock = 256, rest = v & ~(uint32_t)t->choice_mask;

	if (name)
		strbuf_puts(out, name);
	else
		strbuf_printf(out, "%#x", v & (uint32_t)t->choice_mask);
	strbuf_puts(out, rest & private ? "_PRIVATE" : "");
	strbuf_puts(out, rest & clock ? "|FUTEX_CLOCK_REALTIME" : "");
	if (rest & ~(private | clock))
		strbuf_printf(out, "|%#x", rest & ~(private | clock));
}

static void print_fcntl_arg(const struct arg_text *a)
{
	switch ((int)a->e->args[1]) {
	case F_SETFL:
		flags_text(flag_table_of(ARG_OPEN), a->v, a->out);
		break;
	case F_SETFD:
		strbuf_puts(a->out, a->v & FD_CLOEXEC ? "FD_CLOEXEC" : "0");
		break;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETOWN:
	case F_SETPIPE_SZ:
		strbuf_printf(a->out, "%d", (int)a->v);
		break;
	default:
		strbuf_printf(a->out, "0x%llx", (unsigned long long)a->v);
	}
}

static void print_sockopt(const struct arg_text *a)
{
	uint64_t level = a->e->args[a->i - 1];
	const char *name = level == SOL_SOCKET ? flag_choice(sockopt_names, a->v)
			   : level == 6        ? flag_choice(tcp_option_names, a->v)
					       : NULL;

	if (name)
		strbuf_puts(a->out, name);
	else
		strbuf_printf(a->out, "%d", (int)a->v);
}

static bool print_number(const struct arg_text *a)
{
	unsigned long long v = a->v;

	switch (a->kinds[a->i]) {
	case ARG_INT:
	case ARG_PID:
	case ARG_UID:
		strbuf_printf(a->out, "%d", (int)v);
		return true;
	case ARG_UINT:
		strbuf_printf(a->out, "%u", (unsigned)v);
		return true;
	case ARG_LONG:
		strbuf_printf(a->out, "%lld", (long long)v);
		return true;
	case ARG_SIZE:
		strbuf_printf(a->out, "%llu", v);
		return true;
	case ARG_HEX:
		strbuf_printf(a->out, v ? "0x%llx" : "%llu", v);
		return true;
	case ARG_OCTAL:
	case ARG_MODE:
		strbuf_printf(a->out, "%#03o", (unsigned)v);
		return true;
	default:
		return false;
	}
}

static bool print_named(const struct arg_text *a)
{
	switch (a->kinds[a->i]) {
	case ARG_FD:
		fd_text(a->e, a->i, a->v, a->out);
		return true;
	case ARG_DIRFD:
		print_dirfd(a);
		return true;
	case ARG_SIGNAL:
		signal_text((int)a->v, a->out);
		return true;
	case ARG_DEV:
		strbuf_printf(a->out, "makedev(%#x, %#x)", major(a->v), minor(a->v));
		return true;
	case ARG_IOCTL:
		print_ioctl((uint32_t)a->v, a->out);
		return true;
	case ARG_CLONE:
		print_clone(a->v, a->out);
		return true;
	case ARG_FUTEX_BITS:
		if ((uint32_t)a->v == FUTEX_BITSET_MATCH_ANY)
			strbuf_puts(a->out, "FUTEX_BITSET_MATCH_ANY");
		else
			strbuf_printf(a->out, "%#x", (uint32_t)a->v);
		return true;
	case ARG_FUTEX_OP:
		print_futex_op((uint32_t)a->v, a->out);
		return true;
	case ARG_FCNTL_ARG:
		print_fcntl_arg(a);
		return true;
	case ARG_SOCKOPT:
		print_sockopt(a);
		return true;
	case ARG_SOCKET_PROTO:
		if (a->e->args[0] == AF_INET || a->e->args[0] == AF_INET6)
			return false;
		strbuf_printf(a->out, "%d", (int)a->v);
		return true;
	default:
		return false;
	}
}

static bool print_pointed(const struct arg_text *a)
{
	switch (a->kinds[a->i]) {
	case ARG_PATH:
	case ARG_STR:
		return print_string(a);
	case ARG_BUF:
	case ARG_BUF_OUT:
	case ARG_PATH_OUT:
		return print_bytes(a);
	case ARG_ARGV:
	case ARG_ENVP:
		return print_argv(a);
	case ARG_IOV:
	case ARG_IOV_OUT:
		return iovecs_text(a);
	case ARG_MSG:
	case ARG_MSG_OUT:
		return message_text(a);
	default:
		return struct_text(a);
	}
}

void arg_text(const struct arg_text *a)
{
	const struct flag_table *flags = flag_table_of(a->kinds[a->i]);

	if (print_number(a) || print_named(a))
		return;
	if (flags) {
		/* They are ints, but for those whose tables have larger values. */
		uint64_t v = a->kinds[a->i] == ARG_CLONE ? a->v : (uint32_t)a->v;

		flags_text(flags, v, a->out);
		return;
	}
	if (!print_pointed(a))
		pointer_text(a->v, a->out);
}

/* --- which arguments there are ---------------------------------------------------------------- */

/* By operation, bits of the six: value, timeout or value, address, value or mask. */
static uint8_t futex_args(const struct syscall_event *e)
{
	static const uint8_t shown[] = {0x0f, 0x07, 0x07, 0x1f, 0x3f, 0x3f, 0x0b,
					0x03, 0x03, 0x2f, 0x27, 0x1f, 0x3f, 0x0b};
	uint32_t op = (uint32_t)e->args[1] & 0x7f;

	return op < ARRAY_SIZE(shown) ? shown[op] : 0x3f;
}

static bool fcntl_has_arg(const struct syscall_event *e)
{
	static const int without[] = {F_GETFD,    F_GETFL,      F_GETOWN,   F_GETSIG,
				      F_GETLEASE, F_GETPIPE_SZ, F_GET_SEALS};

	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if ((int)e->args[1] == without[i])
			return false;
	return true;
}

uint8_t args_shown(const struct syscall_event *e, const uint8_t *kinds)
{
	unsigned n = 0;

	while (n < SYSCALL_ARGS && kinds[n] != ARG_END)
		n++;
	if (kinds[1] == ARG_FUTEX_OP)
		return futex_args(e);
	if (n && kinds[n - 1] == ARG_FCNTL_ARG && !fcntl_has_arg(e))
		n--;
	if (kinds[3] == ARG_MREMAP && !(e->args[3] & (MREMAP_FIXED | MREMAP_DONTUNMAP)))
		n = 4;
	if (kinds[0] == ARG_MEMBARRIER && !(e->args[1] & MEMBARRIER_CMD_FLAG_CPU))
		n = 2;
	for (unsigned i = 1; i < n; i++)
		if (kinds[i] == ARG_MODE && kinds[i - 1] == ARG_OPEN &&
		    !(e->args[i - 1] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))))
			n = i;
	return (uint8_t)((1u << n) - 1);
}
