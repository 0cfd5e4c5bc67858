/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/elf_file.h>
#include <inspect/explain.h>
#include <inspect/probe_points.h>
#include <inspect/procfs.h>
#include <inspect/symbolize.h>

enum { FORMAT_BYTES_MAX = 1 << 16, NAMES_SHOWN = 5 };

void probe_text_release(struct probe_text *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->texts); i++)
		free(p->texts[i]);
	for (size_t i = 0; i < p->n_fields; i++)
		free(p->fields[i]);
	*p = (struct probe_text){0};
}

/* --- the file --------------------------------------------------------------------------------- */

struct mapped_search {
	const char *name;
	pid_t pid;
	char *found;
};

static const char deleted[] = " (deleted)";

static bool is_deleted(const char *path)
{
	size_t n = strlen(path);

	return n >= strlen(deleted) && str_eq(path + n - strlen(deleted), deleted);
}

/* libc.so.6, or libc: "/usr/lib/libc.so.6" is mapped. A path: what was there, and is no longer. */
static bool is_searched(const char *name, const char *path)
{
	const char *base = strrchr(path, '/'), *rest;
	size_t n = strlen(name);

	if (strchr(name, '/'))
		return !strncmp(path, name, n) && str_eq(path + n, deleted);
	if (!base || strncmp(base + 1, name, n))
		return false;
	rest = base + 1 + n;
	return !*rest || *rest == '.' || *rest == '-' || str_eq(rest, deleted);
}

/* A file that was deleted or replaced, as by an upgrade, is still to be had by its mapping. */
static int match_mapped(void *ctx, const struct proc_map *map)
{
	struct mapped_search *s = ctx;

	if (!is_searched(s->name, map->path))
		return 0;
	if (!is_deleted(map->path))
		s->found = strdup(map->path);
	else if (asprintf(&s->found, "/proc/%d/map_files/%llx-%llx", proc_living(s->pid),
			  (unsigned long long)map->start, (unsigned long long)map->end) < 0)
		s->found = NULL;
	return s->found ? 1 : -ENOMEM;
}

/* In the folders of a list with colons. */
static char *find_in(const char *folders, const char *name, int mode)
{
	for (const char *at = folders; *at;) {
		size_t n = strcspn(at, ":");
		char *file = NULL;

		if (asprintf(&file, "%.*s/%s", (int)n, at, name) < 0)
			return NULL;
		if (access(file, mode) == 0)
			return file;
		free(file);
		at += n + (at[n] == ':');
	}
	return NULL;
}

/* A program, or a library where the loader looks first. */
static char *find_installed(const char *name)
{
	static const char libraries[] =
		"/lib64:/usr/lib64:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
		"/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:/lib:/usr/lib:/usr/local/lib";
	const char *path = getenv("PATH");
	char *found = find_in(path ? path : "/usr/bin:/bin", name, X_OK);

	return found ? found : find_in(libraries, name, R_OK);
}

/* The path to open, of the target's root when it has one of its own. */
static int find_file(const char *text, size_t n, const struct probe_where *w, char **ret,
		     struct diag *d)
{
	CLEANUP(freep) char *name = strndup(text, n);
	struct mapped_search search = {.name = name, .pid = w->pid};
	char *path = NULL;

	if (!name)
		return diag_errno(d, -ENOMEM, "--probe");
	if (w->pid)
		proc_maps_each(w->pid, match_mapped, &search);
	if (!search.found && strchr(name, '/'))
		search.found = strdup(name);
	else if (!search.found && !w->pid)
		search.found = find_installed(name);
	if (!search.found) {
		diag_set(d, -ENOENT, "--probe %s: no file '%s'", text, name);
		diag_why(d, w->pid ? "the target has mapped no file of that name"
				   : "neither a path, nor a program in $PATH, nor a library");
		return -ENOENT;
	}
	if (w->pid && !str_starts(search.found, "/proc/") &&
	    asprintf(&path, "/proc/%d/root%s", proc_living(w->pid), search.found) < 0)
		path = NULL;
	if (path && access(path, F_OK)) {
		free(path);
		path = NULL;
	}
	if (path) {
		free(search.found);
		*ret = path;
	} else {
		*ret = search.found;
	}
	return 0;
}

/* --- the function ----------------------------------------------------------------------------- */

/* The name itself, or demangled, with or without its parameters. */
static bool is_called(const char *mangled, const char *wanted)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};
	size_t n = strlen(wanted);

	if (str_eq(mangled, wanted))
		return true;
	if (mangled[0] != '_' || !symbol_demangle(mangled, &name))
		return false;
	return !strncmp(strbuf_str(&name), wanted, n) &&
	       (!name.v[n] || (name.v[n] == '(' && !strchr(wanted, '(')));
}

/* Functions of a name: overloads, and static ones of several files, are several. */
struct function_search {
	const char *name;
	uint64_t elf_vaddr; /* of the first */
	size_t n;
	struct strbuf all; /* the first names */
};

static int match_function(void *ctx, const char *name, uint64_t elf_vaddr)
{
	struct function_search *s = ctx;

	/* A second name of it, or the same in the other table. */
	if (!is_called(name, s->name) || (s->n && elf_vaddr == s->elf_vaddr))
		return 0;
	if (!s->n)
		s->elf_vaddr = elf_vaddr;
	if (s->n < NAMES_SHOWN)
		strbuf_printf(&s->all, "%s%s", s->n ? ", " : "", name);
	s->n++;
	return 0;
}

static int no_function(const char *text, const char *path, const char *name, struct elf_file *f,
		       struct diag *d)
{
	diag_set(d, -ENOENT, "--probe %s: no function '%s' in %s", text, name, path);
	if (strstr(path, "python")) {
		diag_why(d, "Python's functions are no code of their own: they cannot be timed so; "
			    "phases of native code and USDT probes can");
		diag_fix(d, "inspect record -p PID      (which functions take the time)");
		diag_fix(d, "inspect use -p PID      (the histograms that an engine keeps itself)");
	} else if (!elf_file_has_symtab(f)) {
		diag_why(d, "the file is stripped: it names only what it exports");
		diag_fix(d, "--probe u:%s:0xOFFSET      (a file offset)", path);
	} else {
		diag_fix(d, "nm -C %s | grep -i '%s'      (what it has)", path, name);
	}
	return -ENOENT;
}

/* "name" or "name+0x10"; operator+ has a sign in its name. */
static int find_function(const char *text, const char *function, const char *path,
			 struct elf_file *f, uint64_t *ret_off, struct diag *d)
{
	const char *plus = strrchr(function, '+');
	bool has_offset = plus && plus[1] >= '0' && plus[1] <= '9';
	CLEANUP(freep)
	char *name = strndup(function, has_offset ? (size_t)(plus - function) : strlen(function));
	struct function_search search = {.name = name};
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	int err = 0;

	if (!name)
		return diag_errno(d, -ENOMEM, "--probe");
	elf_functions_each(f, match_function, &search);
	if (!search.n && !elf_debug_file_find(f, path, -1, &debug))
		elf_functions_each(debug, match_function, &search);
	if (!search.n)
		err = no_function(text, path, name, f, d);
	if (search.n > 1) {
		err = diag_set(d, -EINVAL, "--probe %s: %zu functions are called so", text,
			       search.n);
		diag_fix(d, "one of %s%s", strbuf_str(&search.all),
			 search.n > NAMES_SHOWN ? ", …" : "");
	}
	strbuf_release(&search.all);
	if (err)
		return err;
	err = elf_file_vaddr_to_off(
		f, search.elf_vaddr + (has_offset ? strtoull(plus + 1, NULL, 0) : 0), ret_off);
	return diag_errno(d, err, "--probe %s: it lies in no part of the file", text);
}

static int parse_function(const char *text, const char *at, const struct probe_where *w,
			  struct probe_text *p, struct diag *d)
{
	/* C++ names have colons: the first one after the path counts. */
	const char *colon = strchr(at, ':');
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	char *end;
	int fd, err;

	if (!colon || colon == at || !colon[1])
		return diag_set(d, -EINVAL, "--probe %s: not of the form u:PATH:FUNC", text);
	err = find_file(at, (size_t)(colon - at), w, &p->texts[1], d);
	if (err)
		return err;
	p->point.path = p->texts[1];
	fd = file_open_regular(p->point.path);
	if (fd < 0)
		return diag_errno(d, fd, "--probe %s: cannot open %s", text, p->point.path);
	err = elf_file_open_fd(fd, &f);
	if (err)
		return diag_errno(d, err, "--probe %s: %s", text, p->point.path);
	if (str_starts(colon + 1, "0x")) {
		p->point.file_off = strtoull(colon + 1, &end, 16);
		return *end ? diag_set(d, -EINVAL, "--probe %s: not an offset: %s", text, colon + 1)
			    : 0;
	}
	return find_function(text, colon + 1, p->point.path, f, &p->point.file_off, d);
}

/* --- the others ------------------------------------------------------------------------------- */

static int parse_usdt(const char *text, const char *at, const struct probe_where *w,
		      struct probe_text *p, struct diag *d)
{
	const char *provider = strchr(at, ':'), *name = provider ? strchr(provider + 1, ':') : NULL;
	int err;

	if (!name || provider == at || name == provider + 1 || !name[1])
		return diag_set(d, -EINVAL, "--probe %s: not of the form usdt:PATH:PROVIDER:NAME",
				text);
	err = find_file(at, (size_t)(provider - at), w, &p->texts[1], d);
	if (err)
		return err;
	p->texts[2] = strndup(provider + 1, (size_t)(name - provider - 1));
	p->texts[3] = strdup(name + 1);
	p->point.path = p->texts[1];
	p->point.category = p->texts[2];
	p->point.name = p->texts[3];
	return p->texts[2] && p->texts[3] ? 0 : diag_errno(d, -ENOMEM, "--probe");
}

static int parse_tracepoint(const char *text, const char *at, const struct host *h,
			    struct probe_text *p, struct diag *d)
{
	const char *colon = strchr(at, ':');

	if (!colon || colon == at || !colon[1] || strchr(colon + 1, '/') || at[0] == '.')
		return diag_set(d, -EINVAL, "--probe %s: not of the form t:CATEGORY:NAME", text);
	p->texts[2] = strndup(at, (size_t)(colon - at));
	p->texts[3] = strdup(colon + 1);
	p->point.category = p->texts[2];
	p->point.name = p->texts[3];
	if (!p->texts[2] || !p->texts[3])
		return diag_errno(d, -ENOMEM, "--probe");
	return h->tracefs[0] ? 0 : explain_tracepoint(-ENOENT, at, h, d);
}

int probe_point_parse(const char *text, const struct probe_where *where, struct probe_text *ret,
		      struct diag *d)
{
	static const struct {
		const char *prefix;
		enum probe_point_kind kind;
	} kinds[] = {
		{"u:", PROBE_FUNCTION},   {"uprobe:", PROBE_FUNCTION},       {"usdt:", PROBE_USDT},
		{"t:", PROBE_TRACEPOINT}, {"tracepoint:", PROBE_TRACEPOINT}, {"k:", PROBE_KERNEL},
		{"kprobe:", PROBE_KERNEL}};
	size_t i = 0;

	*ret = (struct probe_text){0};
	while (i < ARRAY_SIZE(kinds) && !str_starts(text, kinds[i].prefix))
		i++;
	if (i == ARRAY_SIZE(kinds))
		return diag_set(d, -EINVAL,
				"--probe %s: not one of u:PATH:FUNC, usdt:PATH:PROVIDER:NAME, "
				"t:CATEGORY:NAME, k:FUNC",
				text);
	ret->texts[0] = strdup(text);
	if (!ret->texts[0])
		return diag_errno(d, -ENOMEM, "--probe");
	ret->point.text = ret->texts[0];
	ret->point.kind = kinds[i].kind;
	text = ret->texts[0];
	switch (kinds[i].kind) {
	case PROBE_FUNCTION:
		return parse_function(text, text + strlen(kinds[i].prefix), where, ret, d);
	case PROBE_USDT:
		return parse_usdt(text, text + strlen(kinds[i].prefix), where, ret, d);
	case PROBE_TRACEPOINT:
		return parse_tracepoint(text, text + strlen(kinds[i].prefix), where->host, ret, d);
	default:
		ret->point.name = text + strlen(kinds[i].prefix);
		return 0;
	}
}

/* --- values ----------------------------------------------------------------------------------- */

/* `field:pid_t prev_pid; offset:24; size:4; signed:1;` of that name. */
static bool find_field(const char *format, const char *name, size_t n, struct probes_field *ret)
{
	for (const char *at = format; (at = strstr(at, "\tfield:")); at++) {
		const char *semicolon = strchr(at, ';');
		unsigned offset, size, is_signed;

		if (!semicolon || semicolon - at < (ptrdiff_t)n ||
		    strncmp(semicolon - n, name, n) ||
		    (semicolon[-(ptrdiff_t)n - 1] != ' ' && semicolon[-(ptrdiff_t)n - 1] != '*'))
			continue;
		if (sscanf(semicolon, ";%*[ \t]offset:%u;%*[ \t]size:%u;%*[ \t]signed:%u;", &offset,
			   &size, &is_signed) != 3 ||
		    offset > UINT16_MAX || !size || size > 8)
			return false;
		*ret = (struct probes_field){(uint16_t)offset, (uint8_t)size, is_signed != 0};
		return true;
	}
	return false;
}

static uint32_t field_number(struct probe_text *p, const char *name, size_t n,
			     const struct host *host)
{
	CLEANUP(strbuf_release) struct strbuf format = {0};
	struct probes_field field;
	char path[512];

	for (size_t i = 0; i < p->n_fields; i++)
		if (strlen(p->fields[i]) == n && !strncmp(p->fields[i], name, n))
			return (uint32_t)i + 1;
	if (p->n_fields == PROBES_ARGS)
		return 0;
	snprintf(path, sizeof(path), "%s/events/%s/%s/format", host->tracefs, p->point.category,
		 p->point.name);
	if (!host->tracefs[0] || file_read(path, FORMAT_BYTES_MAX, &format) ||
	    !find_field(strbuf_str(&format), name, n, &field))
		return 0;
	p->fields[p->n_fields] = strndup(name, n);
	if (!p->fields[p->n_fields])
		return 0;
	p->point.fields[p->n_fields++] = field;
	return (uint32_t)p->n_fields;
}

uint32_t probe_value_number(struct probe_text *p, const char *name, size_t n,
			    const struct host *host)
{
	if (n == 6 && !strncmp(name, "retval", n))
		return PROBES_RESULT;
	if (p->point.kind == PROBE_TRACEPOINT)
		return field_number(p, name, n, host);
	if (n == 4 && !strncmp(name, "arg", 3) && name[3] >= '1' && name[3] <= '0' + PROBES_ARGS)
		return (uint32_t)(name[3] - '0');
	return 0;
}

/* One comparison at *at, which is stepped over. */
static int parse_condition(const char **at, struct probe_text *p, const struct host *host,
			   struct probes_condition *ret)
{
	static const struct {
		const char *sign;
		enum probes_operator is;
	} signs[] = {{"==", PROBES_EQUAL},      {"!=", PROBES_NOT_EQUAL},
		     {"<=", PROBES_LESS_EQUAL}, {">=", PROBES_GREATER_EQUAL},
		     {"<", PROBES_LESS},        {">", PROBES_GREATER}};
	size_t n, i = 0;
	char *end;

	*at += strspn(*at, " ");
	n = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	ret->what = n ? probe_value_number(p, *at, n, host) : 0;
	*at += n;
	*at += strspn(*at, " ");
	while (i < ARRAY_SIZE(signs) && !str_starts(*at, signs[i].sign))
		i++;
	if (!ret->what || i == ARRAY_SIZE(signs))
		return -EINVAL;
	ret->is = signs[i].is;
	*at += strlen(signs[i].sign);
	errno = 0;
	ret->value = strtoll(*at, &end, 0);
	if (end == *at || errno)
		return -EINVAL;
	*at = end + strspn(end, " ");
	return 0;
}

int probe_conditions_parse(const char *text, struct probe_text *p, const struct host *host,
			   struct probes_setup *setup, struct diag *d)
{
	const char *at = text;

	for (;;) {
		int err = setup->n_conditions == PROBES_CONDITIONS ? -E2BIG : 0;

		if (!err)
			err = parse_condition(&at, p, host,
					      &setup->conditions[setup->n_conditions]);
		if (!err && *at && !str_starts(at, "&&"))
			err = -EINVAL;
		if (err) {
			diag_set(d, -EINVAL, "--if '%s': not a condition", text);
			diag_why(d, p->point.kind == PROBE_TRACEPOINT
					    ? "it compares fields of the tracepoint's format"
					    : "it compares arg1 to arg6 and retval");
			diag_fix(d, "--if 'arg3>4096 && retval>=0'      (at most %d)",
				 PROBES_CONDITIONS);
			return -EINVAL;
		}
		setup->n_conditions++;
		if (!*at)
			return 0;
		at += 2;
	}
}
