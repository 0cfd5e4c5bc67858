/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_types.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <inspect/array.h>
#include <inspect/hashmap.h>
#include <inspect/procfs.h>
#include <inspect/strbuf.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define BTF_BYTES_MAX (256u << 20)

/* BTF that is read, and what is picked of it. */
struct picking {
	const uint8_t *types;
	const char *strings;
	size_t types_bytes, strings_bytes;
	ARRAY(uint32_t) at;     /* by id: where the type lies */
	ARRAY(uint32_t) picked; /* ids, in the order of their new ones, which begin with 1 */
	uint32_t *new_ids;      /* by id; 0: not picked */
	struct strbuf out, out_strings;
};

static void picking_release(struct picking *p)
{
	array_release(&p->at);
	array_release(&p->picked);
	free(p->new_ids);
	strbuf_release(&p->out);
	strbuf_release(&p->out_strings);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* What follows a type; SIZE_MAX: a kind that is not known. */
static size_t rest_bytes(const struct btf_type *t)
{
	static const struct {
		uint8_t fixed, each;
	} rests[] = {
		[BTF_KIND_INT] = {sizeof(uint32_t), 0},
		[BTF_KIND_ARRAY] = {sizeof(struct btf_array), 0},
		[BTF_KIND_STRUCT] = {0, sizeof(struct btf_member)},
		[BTF_KIND_UNION] = {0, sizeof(struct btf_member)},
		[BTF_KIND_ENUM] = {0, sizeof(struct btf_enum)},
		[BTF_KIND_FUNC_PROTO] = {0, sizeof(struct btf_param)},
		[BTF_KIND_VAR] = {sizeof(struct btf_var), 0},
		[BTF_KIND_DATASEC] = {0, sizeof(struct btf_var_secinfo)},
		[BTF_KIND_DECL_TAG] = {sizeof(struct btf_decl_tag), 0},
		[BTF_KIND_ENUM64] = {0, sizeof(struct btf_enum64)},
	};
	unsigned kind = btf_kind(t);

	if (!kind || kind >= ARRAY_SIZE(rests))
		return SIZE_MAX;
	return rests[kind].fixed + (size_t)rests[kind].each * btf_vlen(t);
}

static const struct btf_type *type_of(const struct picking *p, uint32_t id)
{
	return (const void *)(p->types + p->at.v[id]);
}

static const char *string_of(const struct picking *p, uint32_t off)
{
	return off < p->strings_bytes ? p->strings + off : "";
}

static int find_types(struct picking *p)
{
	int err = array_push(&p->at, 0);

	for (size_t at = 0, rest; !err && at < p->types_bytes;) {
		const struct btf_type *t = (const void *)(p->types + at);

		if (p->types_bytes - at < sizeof(*t))
			return -EBADMSG;
		rest = rest_bytes(t);
		if (rest > p->types_bytes - at - sizeof(*t))
			return -EBADMSG;
		err = array_push(&p->at, (uint32_t)at);
		at += sizeof(*t) + rest;
	}
	return err;
}

static int read_btf(struct picking *p, const void *btf, size_t n)
{
	const struct btf_header *h = btf;
	size_t room = n - sizeof(*h);

	if (n < sizeof(*h) || n > BTF_BYTES_MAX || h->magic != BTF_MAGIC ||
	    h->hdr_len < sizeof(*h) || h->hdr_len > n || h->hdr_len % 4)
		return -EBADMSG;
	room = n - h->hdr_len;
	if (h->type_off > room || h->type_len > room - h->type_off || h->type_off % 4 ||
	    h->str_off > room || h->str_len > room - h->str_off || !h->str_len)
		return -EBADMSG;
	p->types = (const uint8_t *)btf + h->hdr_len + h->type_off;
	p->types_bytes = h->type_len;
	p->strings = (const char *)btf + h->hdr_len + h->str_off;
	p->strings_bytes = h->str_len;
	return p->strings[p->strings_bytes - 1] ? -EBADMSG : find_types(p);
}

/* --- picking ---------------------------------------------------------------------------------- */

size_t kernel_types_name_bytes(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = n; i-- > 0;)
		if (i + 5 <= n && name[i] != '_' && !memcmp(name + i + 1, "___", 3) &&
		    name[i + 4] != '_')
			return i + 1;
	return n;
}

/* The kinds that have a name which an object can mean. */
static bool is_named_kind(unsigned kind)
{
	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM ||
	       kind == BTF_KIND_ENUM64 || kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_INT ||
	       kind == BTF_KIND_FWD || kind == BTF_KIND_FLOAT;
}

/* Of what can be part of a type; 0 (void) for others and what is not there. */
static int pick(struct picking *p, uint32_t id, uint32_t *ret_new_id)
{
	unsigned kind = id && id < p->at.n ? btf_kind(type_of(p, id)) : 0;
	int err = 0;

	if (!is_named_kind(kind) && kind != BTF_KIND_PTR && kind != BTF_KIND_ARRAY &&
	    kind != BTF_KIND_VOLATILE && kind != BTF_KIND_CONST && kind != BTF_KIND_RESTRICT &&
	    kind != BTF_KIND_TYPE_TAG) {
		*ret_new_id = 0;
		return 0;
	}
	if (!p->new_ids[id]) {
		err = array_push(&p->picked, id);
		p->new_ids[id] = (uint32_t)p->picked.n;
	}
	*ret_new_id = p->new_ids[id];
	return err;
}

static int pick_named(struct picking *p, const char *const *names, size_t n_names)
{
	struct hashmap map = {0};
	uint32_t new_id;
	int err = 0;

	for (size_t i = 0; i < n_names && !err; i++)
		err = hashmap_insert(&map, hash_bytes(names[i], kernel_types_name_bytes(names[i])),
				     (uint32_t)i);
	for (uint32_t id = 1; id < p->at.n && !err; id++) {
		const struct btf_type *t = type_of(p, id);
		const char *name = string_of(p, t->name_off);
		size_t n = *name && is_named_kind(btf_kind(t)) ? kernel_types_name_bytes(name) : 0;
		uint32_t at, i;

		if (!n)
			continue;
		hashmap_each_candidate(&map, hash_bytes(name, n), at, i) {
			if (kernel_types_name_bytes(names[i]) == n && !memcmp(names[i], name, n)) {
				err = pick(p, id, &new_id);
				break;
			}
		}
	}
	hashmap_release(&map);
	return err;
}

/* --- writing ---------------------------------------------------------------------------------- */

static uint32_t put_string(struct picking *p, uint32_t off)
{
	const char *s = string_of(p, off);
	size_t at = p->out_strings.n;

	if (!*s)
		return 0;
	strbuf_add(&p->out_strings, s, strlen(s) + 1);
	return (uint32_t)at;
}

/* Of n things that follow a type, each of size_bytes with the name first, and a type behind it. */
static int put_rest(struct picking *p, const void *v, size_t n, size_t size_bytes, bool with_type)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		uint32_t words[3];

		memcpy(words, (const uint8_t *)v + i * size_bytes, size_bytes);
		words[0] = put_string(p, words[0]);
		if (with_type)
			err = pick(p, words[1], &words[1]);
		strbuf_add(&p->out, (const char *)words, size_bytes);
	}
	return err;
}

static int put_array(struct picking *p, const struct btf_array *a)
{
	struct btf_array copy = *a;
	int err = pick(p, a->type, &copy.type);

	if (!err)
		err = pick(p, a->index_type, &copy.index_type);
	strbuf_add(&p->out, (const char *)&copy, sizeof(copy));
	return err;
}

static int put_type(struct picking *p, uint32_t id)
{
	const struct btf_type *t = type_of(p, id);
	struct btf_type copy = *t;
	int err = 0;

	copy.name_off = put_string(p, t->name_off);
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
		copy.type = 0;
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		err = pick(p, t->type, &copy.type);
	}
	strbuf_add(&p->out, (const char *)&copy, sizeof(copy));
	if (err)
		return err;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		strbuf_add(&p->out, (const char *)(t + 1), sizeof(uint32_t));
		return 0;
	case BTF_KIND_ARRAY:
		return put_array(p, btf_array(t));
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return put_rest(p, t + 1, btf_vlen(t), sizeof(struct btf_member), true);
	case BTF_KIND_ENUM:
		return put_rest(p, t + 1, btf_vlen(t), sizeof(struct btf_enum), false);
	case BTF_KIND_ENUM64:
		return put_rest(p, t + 1, btf_vlen(t), sizeof(struct btf_enum64), false);
	}
	return 0;
}

static bool write_all(int fd, const void *v, size_t n)
{
	return write(fd, v, n) == (ssize_t)n; /* into memory: all or nothing */
}

static int write_file(const struct picking *p)
{
	struct btf_header h = {.magic = BTF_MAGIC,
			       .version = BTF_VERSION,
			       .hdr_len = sizeof(h),
			       .type_len = (uint32_t)p->out.n,
			       .str_off = (uint32_t)p->out.n,
			       .str_len = (uint32_t)p->out_strings.n};
	CLEANUP(closep) int fd = memfd_create("kernel types", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!write_all(fd, &h, sizeof(h)) || !write_all(fd, p->out.v, p->out.n) ||
	    !write_all(fd, p->out_strings.v, p->out_strings.n))
		return -EIO;
	return TAKE_FD(fd);
}

int kernel_types_pick(const void *btf, size_t n, const char *const *names, size_t n_names)
{
	CLEANUP(picking_release) struct picking p = {0};
	int err = read_btf(&p, btf, n);

	if (err)
		return err;
	p.new_ids = calloc(p.at.n, sizeof(*p.new_ids));
	if (!p.new_ids)
		return -ENOMEM;
	strbuf_add(&p.out_strings, "", 1);
	err = pick_named(&p, names, n_names);
	for (size_t i = 0; i < p.picked.n && !err; i++)
		err = put_type(&p, p.picked.v[i]);
	if (!err && (p.out.failed || p.out_strings.failed))
		err = -ENOMEM;
	if (!err && !p.picked.n)
		err = -ENOENT;
	return err ? err : write_file(&p);
}

/* --- for an object ---------------------------------------------------------------------------- */

/* Since 6.16 it can be mapped. */
static int pick_of_kernel(const char *const *names, size_t n_names)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	CLEANUP(closep) int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *v;
	int err;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	v = st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
			   : MAP_FAILED;
	if (v != MAP_FAILED) {
		err = kernel_types_pick(v, (size_t)st.st_size, names, n_names);
		munmap(v, (size_t)st.st_size);
		return err;
	}
	err = file_read(KERNEL_BTF, BTF_BYTES_MAX, &text);
	return err ? err : kernel_types_pick(text.v, text.n, names, n_names);
}

static int pick_for(const void *object, size_t object_bytes)
{
	struct bpf_object *o = bpf_object__open_mem(object, object_bytes, NULL);
	struct btf *btf = o ? bpf_object__btf(o) : NULL;
	ARRAY(const char *) names = {0};
	int err = btf ? 0 : -EBADMSG;

	for (uint32_t id = 1; !err && id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name = btf__name_by_offset(btf, t->name_off);

		if (name && *name && is_named_kind(btf_kind(t)))
			err = array_push(&names, name);
	}
	if (!err)
		err = pick_of_kernel(names.v, names.n);
	array_release(&names);
	bpf_object__close(o);
	return err;
}

const struct bpf_object_open_opts *kernel_types_open(struct kernel_types *k, const void *object,
						     size_t object_bytes)
{
	k->fd = pick_for(object, object_bytes);
	k->opts = (struct bpf_object_open_opts){.sz = sizeof(k->opts)};
	if (k->fd >= 0) {
		snprintf(k->path, sizeof(k->path), "/proc/self/fd/%d", k->fd);
		k->opts.btf_custom_path = k->path;
	}
	return &k->opts;
}

void kernel_types_release(struct kernel_types *k)
{
	closep(&k->fd);
	k->fd = -1;
}
