/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include <inspect/fd_names.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define PARTS_MAX STREAM_FILE_PARTS

/* The components, leaf first, as a path. */
static void path_text(const struct stream_file *f, const char *names, size_t n, struct strbuf *out)
{
	const char *parts[PARTS_MAX];
	size_t n_parts = 0;

	for (size_t at = 0; at < n && n_parts < PARTS_MAX;) {
		size_t bytes = strnlen(names + at, n - at);

		if (at + bytes >= n)
			break; /* without its end: damaged */
		parts[n_parts++] = names + at;
		at += bytes + 1;
	}
	if (f->above)
		strbuf_puts(out, "...");
	if (!n_parts)
		strbuf_putc(out, '/');
	while (n_parts) {
		strbuf_putc(out, '/');
		strbuf_puts(out, parts[--n_parts]);
	}
	if (f->deleted)
		strbuf_puts(out, " (deleted)");
}

/* "[eventpoll]" */
static void anonymous_text(const char *name, size_t n, struct strbuf *out)
{
	CLEANUP(strbuf_release) struct strbuf link = {0};

	strbuf_puts(&link, "anon_inode:");
	strbuf_add(&link, name, strnlen(name, n));
	fd_names_link(NULL, 0, strbuf_str(&link), out);
}

static const char *protocol_name(const struct stream_socket *s)
{
	static const struct {
		uint16_t protocol;
		const char *name;
	} names[] = {{IPPROTO_TCP, "TCP"},
		     {IPPROTO_UDP, "UDP"},
		     {IPPROTO_ICMP, "ICMP"},
		     {IPPROTO_SCTP, "SCTP"},
		     {IPPROTO_ICMPV6, "ICMPv6"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].protocol == s->protocol)
			return names[i].name;
	return s->type == SOCK_RAW ? "RAW" : "socket";
}

static void unix_text(const struct stream_file *f, const struct stream_socket *s, const char *path,
		      size_t n, struct strbuf *out)
{
	bool abstract;

	n = MIN(n, (size_t)s->path_bytes);
	if (!n || s->peers_path)
		strbuf_printf(out, "unix:[%llu]", (unsigned long long)f->inode);
	else
		strbuf_puts(out, "unix:");
	if (!n)
		return;
	strbuf_puts(out, s->peers_path ? "->" : "");
	abstract = !*path;
	if (abstract)
		strbuf_putc(out, '@');
	strbuf_add(out, path + abstract, abstract ? n - 1 : strnlen(path, n));
}

static void socket_text(const struct stream_file *f, const uint8_t *data, size_t n,
			struct strbuf *out)
{
	struct stream_socket s;
	struct inet_ends ends;

	if (n < sizeof(s)) {
		strbuf_printf(out, "socket:[%llu]", (unsigned long long)f->inode);
		return;
	}
	memcpy(&s, data, sizeof(s));
	ends = (struct inet_ends){
		.family = s.family, .local_port = s.local_port, .remote_port = s.remote_port};
	memcpy(ends.local, s.local, sizeof(ends.local));
	memcpy(ends.remote, s.remote, sizeof(ends.remote));
	if (s.family == AF_INET || s.family == AF_INET6)
		inet_ends_text(protocol_name(&s), &ends, out);
	else if (s.family == AF_UNIX)
		unix_text(f, &s, (const char *)data + sizeof(s), n - sizeof(s), out);
	else if (s.family == AF_NETLINK)
		strbuf_printf(out, "netlink:[%llu]", (unsigned long long)f->inode);
	else
		strbuf_printf(out, "socket:[%llu]", (unsigned long long)f->inode);
}

static void file_text(const uint8_t *data, size_t n, struct strbuf *out)
{
	struct stream_file f;
	const char *names = (const char *)data + sizeof(f);

	if (n < sizeof(f))
		return;
	memcpy(&f, data, sizeof(f));
	n -= sizeof(f);
	if (S_ISSOCK(f.mode))
		socket_text(&f, data + sizeof(f), n, out);
	else if (f.magic == PIPEFS_MAGIC)
		strbuf_printf(out, "pipe:[%llu]", (unsigned long long)f.inode);
	else if (f.magic == ANON_INODE_FS_MAGIC)
		anonymous_text(names, n, out);
	else
		path_text(&f, names, n, out);
}

static void add_capture(struct syscall_event *e, const struct stream_chunk *c, const uint8_t *data,
			struct strbuf *names)
{
	static const uint8_t kinds[] = {
		[STREAM_CHUNK_MEMORY] = CAPTURE_MEMORY, [STREAM_CHUNK_ITEM] = CAPTURE_ITEM,
		[STREAM_CHUNK_FD] = CAPTURE_NAME,       [STREAM_CHUNK_FOLDER] = CAPTURE_FOLDER,
		[STREAM_CHUNK_INNER] = CAPTURE_INNER,   [STREAM_CHUNK_COUNT] = CAPTURE_COUNT,
	};
	struct syscall_capture *to = &e->captures[e->n_captures++];

	*to = (struct syscall_capture){.arg = c->arg,
				       .kind = kinds[c->kind],
				       .truncated = c->truncated,
				       .n_bytes = c->n_bytes,
				       .data = data};
	if (c->kind == STREAM_CHUNK_FD || c->kind == STREAM_CHUNK_FOLDER) {
		size_t at = names->n;

		file_text(data, c->n_bytes, names);
		to->data = (const void *)(uintptr_t)at; /* until the text stands still */
		to->n_bytes = (uint32_t)(names->n - at);
	}
}

int stream_decode(const void *record, size_t n_bytes, struct strbuf *names,
		  struct syscall_event *ret, uint64_t *ret_lost)
{
	const uint8_t *data = (const uint8_t *)record + sizeof(struct stream_head);
	struct stream_head h;

	if (n_bytes < sizeof(h))
		return -EBADMSG;
	memcpy(&h, record, sizeof(h));
	n_bytes = MIN(n_bytes - sizeof(h), (size_t)h.n_bytes);
	ret->pid = (int32_t)h.pid;
	ret->tid = (int32_t)h.tid;
	ret->own_pid = (int32_t)h.own_pid;
	ret->own_tid = (int32_t)h.own_tid;
	memcpy(ret->comm, h.comm, sizeof(ret->comm));
	ret->nr = h.code % STREAM_NUMBERS;
	ret->abi = (uint8_t)MIN(h.code / STREAM_NUMBERS, SYSCALL_ABIS - 1);
	ret->end = MIN(h.end, (uint8_t)SYSCALL_IN_FLIGHT);
	ret->before = h.before;
	memcpy(ret->args, h.args, sizeof(ret->args));
	ret->result = h.result;
	ret->start_ns = h.start_ns;
	ret->duration_ns = h.duration_ns;
	ret->n_captures = 0;
	ret->n_frames = 0;
	ret->n_kernel = 0;
	ret->stack_stop = 0;
	ret->stack_lost = h.stack_lost != 0;
	*ret_lost = h.lost_before;
	strbuf_clear(names);
	for (size_t at = 0; ret->n_captures < SYSCALL_CAPTURES_MAX;) {
		struct stream_chunk c;

		if (at + sizeof(c) > n_bytes)
			break;
		memcpy(&c, data + at, sizeof(c));
		at += sizeof(c);
		if (c.n_bytes > n_bytes - at || c.kind > STREAM_CHUNK_COUNT)
			return -EBADMSG;
		add_capture(ret, &c, data + at, names);
		at += ALIGN_UP((size_t)c.n_bytes, 8);
	}
	for (uint32_t i = 0; i < ret->n_captures; i++) {
		struct syscall_capture *c = &ret->captures[i];

		if (c->kind == CAPTURE_NAME || c->kind == CAPTURE_FOLDER)
			c->data = strbuf_str(names) + (uintptr_t)c->data;
	}
	return names->failed ? -ENOMEM : 0;
}

/* --- files of frames -------------------------------------------------------------------------- */

uint8_t stream_record_kind(const void *record, size_t n_bytes)
{
	struct stream_head h;

	if (n_bytes < sizeof(h))
		return STREAM_RETURNED;
	memcpy(&h, record, sizeof(h));
	return h.end;
}

static uint64_t hash_of(uint64_t device, uint64_t inode)
{
	return hash_u64(inode ^ device << 40);
}

static const struct stream_mapped *find_mapped(const struct stream_files *f, uint64_t device,
					       uint64_t inode)
{
	uint32_t at, i;

	hashmap_each_candidate(&f->by_inode, hash_of(device, inode), at, i)
		if (f->v.v[i].device == device && f->v.v[i].inode == inode)
			return &f->v.v[i];
	return NULL;
}

int stream_files_add(struct stream_files *f, const void *record, size_t n_bytes)
{
	CLEANUP(strbuf_release) struct strbuf path = {0};
	const uint8_t *data = (const uint8_t *)record + sizeof(struct stream_head);
	struct stream_mapped m;
	struct stream_chunk c;
	struct stream_head h;
	int err;

	if (n_bytes < sizeof(h) + sizeof(c))
		return 0;
	memcpy(&h, record, sizeof(h));
	memcpy(&c, data, sizeof(c));
	if (c.n_bytes > n_bytes - sizeof(h) - sizeof(c))
		return 0;
	m = (struct stream_mapped){.device = h.args[0], .inode = h.args[1]};
	if (find_mapped(f, m.device, m.inode))
		return 0; /* forgotten by the program, not by us */
	file_text(data + sizeof(c), c.n_bytes, &path);
	if (path.failed || (!f->paths.strings.n && intern_init(&f->paths)))
		return -ENOMEM;
	err = intern_puts(&f->paths, strbuf_str(&path), &m.path);
	if (!err)
		err = array_push(&f->v, m);
	return err ? err
		   : hashmap_insert(&f->by_inode, hash_of(m.device, m.inode), (uint32_t)f->v.n - 1);
}

const char *stream_files_path(const struct stream_files *f, uint64_t device, uint64_t inode)
{
	const struct stream_mapped *m = find_mapped(f, device, inode);

	return m ? intern_str(&f->paths, m->path) : NULL;
}

void stream_files_release(struct stream_files *f)
{
	if (f->paths.strings.n)
		intern_release(&f->paths);
	hashmap_release(&f->by_inode);
	array_release(&f->v);
}
