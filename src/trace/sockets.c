/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "flags.h"
#include "text.h"

/* struct iovec and struct msghdr of a 64-bit process */
struct wire_iovec {
	uint64_t base, len_bytes;
};

struct wire_msghdr {
	uint64_t name;
	uint32_t name_bytes, pad;
	uint64_t iov, n_iov, control, control_bytes;
	uint32_t flags, pad2;
};

static void inet(const void *data, size_t n, struct strbuf *out)
{
	struct sockaddr_in a = {0};
	char text[INET_ADDRSTRLEN] = "";

	memcpy(&a, data, MIN(n, sizeof(a)));
	inet_ntop(AF_INET, &a.sin_addr, text, sizeof(text));
	strbuf_printf(out, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", ntohs(a.sin_port),
		      text);
}

static void inet6(const void *data, size_t n, struct strbuf *out)
{
	struct sockaddr_in6 a = {0};
	char text[INET6_ADDRSTRLEN] = "";

	memcpy(&a, data, MIN(n, sizeof(a)));
	inet_ntop(AF_INET6, &a.sin6_addr, text, sizeof(text));
	strbuf_printf(out,
		      ", sin6_port=htons(%u), sin6_flowinfo=htonl(%u), inet_pton(AF_INET6, \"%s\", "
		      "&sin6_addr), sin6_scope_id=%u",
		      ntohs(a.sin6_port), ntohl(a.sin6_flowinfo), text, a.sin6_scope_id);
}

static void unix_path(const void *data, size_t n, struct strbuf *out)
{
	size_t at = offsetof(struct sockaddr_un, sun_path);
	const char *path = (const char *)data + at;
	bool abstract = n > at && !*path;

	if (n <= at)
		return; /* not bound */
	strbuf_puts(out, abstract ? ", sun_path=@" : ", sun_path=");
	if (abstract)
		quoted_text(path + 1, n - at - 1, false, false, out);
	else
		quoted_text(path, strnlen(path, n - at), false, false, out);
}

static void netlink(const void *data, size_t n, struct strbuf *out)
{
	struct sockaddr_nl a = {0};

	memcpy(&a, data, MIN(n, sizeof(a)));
	strbuf_printf(out, ", nl_pid=%u, nl_groups=%08x", a.nl_pid, a.nl_groups);
}

void sockaddr_text(const void *data, size_t n, struct strbuf *out)
{
	static const struct {
		uint16_t family;
		void (*print)(const void *, size_t, struct strbuf *);
	} printers[] = {
		{AF_INET, inet}, {AF_INET6, inet6}, {AF_UNIX, unix_path}, {AF_NETLINK, netlink}};
	uint16_t family = 0;

	if (n < sizeof(family)) {
		strbuf_puts(out, "{}");
		return;
	}
	memcpy(&family, data, sizeof(family));
	strbuf_puts(out, "{sa_family=");
	flags_text(flag_table_of(ARG_FAMILY), family, out);
	for (size_t i = 0; i < ARRAY_SIZE(printers); i++)
		if (printers[i].family == family)
			printers[i].print(data, n, out);
	strbuf_putc(out, '}');
}

/* What was captured of n iovecs in `list`: the bytes of the first of them, as items. */
static void iovecs(const struct arg_text *a, const struct syscall_capture *list, uint64_t n,
		   struct strbuf *out)
{
	struct wire_iovec v;
	size_t taken = list->n_bytes / sizeof(v);

	strbuf_putc(out, '[');
	for (size_t i = 0; i < taken && i < n; i++) {
		const struct syscall_capture *bytes =
			capture_find(a->e, a->i, CAPTURE_ITEM, (unsigned)i);

		memcpy(&v, (const char *)list->data + i * sizeof(v), sizeof(v));
		strbuf_puts(out, i ? ", {iov_base=" : "{iov_base=");
		if (bytes)
			quoted_text(bytes->data, bytes->n_bytes, true, bytes->truncated, out);
		else
			pointer_text(v.base, out);
		strbuf_printf(out, ", iov_len=%llu}", (unsigned long long)v.len_bytes);
	}
	strbuf_puts(out, taken < n ? ", ...]" : "]");
}

bool iovecs_text(const struct arg_text *a)
{
	const struct syscall_capture *c = capture_find(a->e, a->i, CAPTURE_MEMORY, 0);

	if (!c || a->i + 1 >= SYSCALL_ARGS)
		return false;
	iovecs(a, c, a->e->args[a->i + 1], a->out);
	return true;
}

bool message_text(const struct arg_text *a)
{
	const struct syscall_capture *inner = capture_find(a->e, a->i, CAPTURE_INNER, 0);
	const struct syscall_capture *list = capture_find(a->e, a->i, CAPTURE_INNER, 1);
	struct wire_msghdr m;

	if (!capture_copy(a->e, a->i, &m, sizeof(m)))
		return false;
	strbuf_puts(a->out, "{msg_name=");
	if (inner && inner->n_bytes)
		sockaddr_text(inner->data, inner->n_bytes, a->out);
	else
		pointer_text(m.name, a->out);
	strbuf_printf(a->out, ", msg_namelen=%u, msg_iov=", m.name_bytes);
	if (list)
		iovecs(a, list, m.n_iov, a->out);
	else
		pointer_text(m.iov, a->out);
	strbuf_printf(a->out, ", msg_iovlen=%llu", (unsigned long long)m.n_iov);
	if (m.control) {
		strbuf_puts(a->out, ", msg_control=");
		pointer_text(m.control, a->out);
	}
	strbuf_printf(a->out,
		      ", msg_controllen=%llu, msg_flags=", (unsigned long long)m.control_bytes);
	flags_text(flag_table_of(ARG_MSG_FLAGS), m.flags, a->out);
	strbuf_putc(a->out, '}');
	return true;
}
