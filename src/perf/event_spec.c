/* SPDX-License-Identifier: BSD-2-Clause */
/* From the text of -e to attrs. The grammar is that of perf (tools/perf/util/parse-events.l),
 * without groups. */
#include "event_spec.h"

#include "event_names.h"
#include "pfm.h"

#include <dirent.h>
#include <fnmatch.h>
#include <inspect/explain.h>
#include <inspect/procfs.h>

#define TEXT_BYTES_MAX 65536
#define EVENTS_MAX 512
#define NAME_BYTES_MAX 1024

struct parser {
	const struct host *host;
	const char *sysfs_root;
	event_specs specs;
	struct diag *d;
};

static void event_spec_release(struct event_spec *s)
{
	free(s->name);
}

void event_specs_release(event_specs *s)
{
	for (size_t i = 0; i < s->n; i++)
		event_spec_release(&s->v[i]);
	array_release(s);
}

/* Takes over `name`, also on failure. */
static int add_event(struct parser *p, const struct perf_event_attr *attr, char *name,
		     bool is_tracepoint)
{
	struct event_spec spec = {.attr = *attr, .name = name, .is_tracepoint = is_tracepoint};
	int err = name ? 0 : -ENOMEM;

	if (!err && p->specs.n == EVENTS_MAX) {
		err = diag_set(p->d, -E2BIG, "more than %d events", EVENTS_MAX);
		free(name);
		return err;
	}
	if (!err)
		err = array_push(&p->specs, spec);
	if (!err)
		return 0;
	free(name);
	return diag_errno(p->d, err, "reading the list of events");
}

/*
 * u, k, h: only these levels are counted; G, H: only guest or host; p up to three times: precise,
 * P: as precise as there is (lowered when opened). As perf does, guests are left out by default.
 */
static int modifiers_apply(struct perf_event_attr *attr, const char *mods)
{
	static const char known[] = "ukhGHpP";
	unsigned count[sizeof(known)] = {0};
	bool levels, guest_host;

	for (const char *m = mods; *m; m++) {
		const char *at = strchr(known, *m);

		if (!at || ++count[at - known] > (*m == 'p' ? 3 : 1))
			return -EINVAL;
	}
	levels = count[0] || count[1] || count[2];
	guest_host = count[3] || count[4];
	attr->exclude_user = levels && !count[0];
	attr->exclude_kernel = levels && !count[1];
	attr->exclude_hv = levels && !count[2];
	attr->exclude_guest = !count[3];
	attr->exclude_host = guest_host && !count[4];
	attr->precise_ip = count[6] ? 3 : count[5] & 3;
	return 0;
}

static int bad_modifiers(struct parser *p, const char *text, const char *mods)
{
	diag_set(p->d, -EINVAL, "event '%s': '%s' are not modifiers that can be used here", text,
		 mods);
	diag_why(p->d, "modifiers are u, k, h (user, kernel, hypervisor), G, H (guest, host), "
		       "p, pp, ppp and P (precise), each once");
	return -EINVAL;
}

/* --- tracepoints ------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef ARRAY(char *) name_list;

static void name_list_release(name_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	array_release(l);
}

/* The names in tracefs' events, or in events/SYSTEM, sorted. */
static int tracefs_names(const struct host *host, const char *system, name_list *ret)
{
	char folder[256];
	DIR *dir;
	int err = 0;

	snprintf(folder, sizeof(folder), "%s/events/%s", host->tracefs, system);
	dir = opendir(folder);
	if (!dir)
		return -errno;
	for (struct dirent *e; !err && (e = readdir(dir));) {
		char *name;

		if (e->d_type != DT_DIR || !event_word_valid(e->d_name))
			continue;
		name = strdup(e->d_name);
		err = name ? array_push(ret, name) : -ENOMEM;
		if (err)
			free(name);
	}
	closedir(dir);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare_names);
	return err;
}

/* Without an own way into tracefs: it is missing, or closed to this user. */
static int no_tracefs(const struct parser *p)
{
	return p->host->tracefs_mounted ? -EACCES : -ENOENT;
}

static int tracepoint_unknown(struct parser *p, const char *system, const char *name, int err)
{
	CLEANUP(name_list_release) name_list names = {0};
	struct near_misses near = {.word = name};
	char full[2 * NEAR_MISS_NAME_MAX], prefix[NEAR_MISS_NAME_MAX + 1];

	snprintf(full, sizeof(full), "%s:%s", system, name);
	explain_tracepoint(err, full, p->host, p->d);
	if (err != -ENOENT || !p->host->tracefs[0])
		return err;
	snprintf(prefix, sizeof(prefix), "%s:", system);
	if (tracefs_names(p->host, system, &names) < 0) {
		near.word = system;
		prefix[0] = 0;
		tracefs_names(p->host, "", &names);
	}
	for (size_t i = 0; i < names.n; i++)
		near_misses_add(&near, names.v[i]);
	if (prefix[0])
		near_misses_advise(&near, prefix, p->d);
	else if (near.n)
		diag_fix(p->d, "did you mean %s:%s?", near.best[0].name, name);
	return err;
}

static int tracepoint_add(struct parser *p, const char *system, const char *name, const char *mods)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT};
	char path[512], full[2 * NEAR_MISS_NAME_MAX + 16];
	int64_t id = -1;
	int err;

	snprintf(path, sizeof(path), "%s/events/%s/%s/id", p->host->tracefs, system, name);
	err = p->host->tracefs[0] ? file_read_i64(path, &id) : no_tracefs(p);
	if (err || id < 0)
		return tracepoint_unknown(p, system, name, err ? err : -EINVAL);
	snprintf(full, sizeof(full), "%s:%s%s%s", system, name, mods ? ":" : "", mods ? mods : "");
	attr.config = (uint64_t)id;
	if (mods && modifiers_apply(&attr, mods) < 0)
		return bad_modifiers(p, full, mods);
	return add_event(p, &attr, strdup(full), true);
}

static int tracepoint_wildcard(struct parser *p, const char *system, const char *pattern,
			       const char *mods)
{
	CLEANUP(name_list_release) name_list names = {0};
	int err = p->host->tracefs[0] ? tracefs_names(p->host, system, &names) : no_tracefs(p);
	size_t before = p->specs.n;

	if (err)
		return tracepoint_unknown(p, system, pattern, err);
	for (size_t i = 0; !err && i < names.n; i++)
		if (fnmatch(pattern, names.v[i], 0) == 0)
			err = tracepoint_add(p, system, names.v[i], mods);
	if (!err && p->specs.n == before)
		err = tracepoint_unknown(p, system, pattern, -ENOENT);
	return err;
}

static int tracepoint_parse(struct parser *p, const char *text, const char *system, char *name)
{
	char *mods = strchr(name, ':');
	bool wildcard;

	if (mods)
		*mods++ = 0;
	wildcard = strpbrk(name, "*?");
	if (strlen(name) >= NEAR_MISS_NAME_MAX || (!wildcard && !event_word_valid(name)))
		return diag_set(p->d, -EINVAL, "'%s' is not the name of an event", text);
	if (wildcard)
		return tracepoint_wildcard(p, system, name, mods);
	return tracepoint_add(p, system, name, mods);
}

/* --- the list --------------------------------------------------------------------------------- */

static int event_unknown(struct parser *p, const char *text, const char *word)
{
	struct near_misses near = {.word = word};

	diag_set(p->d, -EINVAL, "unknown event '%s'", text);
	event_names_near(&near);
	near_misses_advise(&near, "", p->d);
	diag_fix(p->d, "`perf list` or /sys/kernel/tracing/available_events list the events");
	return -EINVAL;
}

static int pmu_parse(struct parser *p, const char *text, char *copy)
{
	struct perf_event_attr attr = {0};
	char *terms = strchr(copy, '/'), *mods, *name = NULL;
	int err;

	*terms++ = 0;
	mods = strchr(terms, '/');
	if (!mods)
		return diag_set(p->d, -EINVAL, "event '%s': the closing '/' is missing", text);
	*mods++ = 0;
	mods += *mods == ':';
	if (modifiers_apply(&attr, mods) < 0)
		return bad_modifiers(p, text, mods);
	err = pmu_event_parse(p->sysfs_root, text, copy, terms, &attr, &name, p->d);
	if (err)
		return err;
	return add_event(p, &attr, name ? name : strdup(text), attr.type == PERF_TYPE_TRACEPOINT);
}

static bool has_tracepoints(const struct parser *p, const char *system)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/events/%s", p->host->tracefs, system);
	return p->host->tracefs[0] && access(path, F_OK) == 0;
}

/* "cycels:u": what follows the colon can only be modifiers, so it is no tracepoint. */
static bool is_misspelt_generic(const struct parser *p, const char *word, const char *rest)
{
	struct perf_event_attr ignored = {0};

	return modifiers_apply(&ignored, rest) == 0 && !has_tracepoints(p, word);
}

static int event_parse(struct parser *p, const char *text)
{
	struct perf_event_attr attr = {0};
	CLEANUP(freep) char *copy = strdup(text);
	bool is_generic;
	char *rest;

	if (!copy)
		return diag_errno(p->d, -ENOMEM, "reading the list of events");
	if (!*text)
		return diag_set(p->d, -EINVAL, "an empty name in the list of events");
	if (strlen(text) > NAME_BYTES_MAX)
		return diag_set(p->d, -ENAMETOOLONG, "event '%.40s…': the name is too long", text);
	if (strpbrk(text, "{}"))
		return diag_set(p->d, -EINVAL, "event '%s': groups {…} are not supported", text);
	if (strchr(copy, '/'))
		return pmu_parse(p, text, copy);
	rest = strchr(copy, ':');
	if (rest)
		*rest++ = 0;
	if (event_name_find(copy, &attr) == 0) {
		if (modifiers_apply(&attr, rest ? rest : "") < 0)
			return bad_modifiers(p, text, rest);
		return add_event(p, &attr, strdup(text), false);
	}
	is_generic = !rest || !event_word_valid(copy) || is_misspelt_generic(p, copy, rest);
	if (!is_generic && has_tracepoints(p, copy))
		return tracepoint_parse(p, text, copy, rest);
	if (pfm_event_find(text, &attr) == 0)
		return add_event(p, &attr, strdup(text), false);
	return is_generic ? event_unknown(p, text, copy) : tracepoint_parse(p, text, copy, rest);
}

/* Cuts the next event off: up to a comma that is not between slashes. NULL at the end. */
static char *next_event(char **text)
{
	char *start = *text, *s = start;
	bool in_terms = false;
	size_t len;

	if (!start)
		return NULL;
	for (; *s && (*s != ',' || in_terms); s++)
		in_terms ^= *s == '/';
	*text = *s ? s + 1 : NULL;
	*s = 0;
	start += strspn(start, " \t\n");
	for (len = strlen(start); len && strchr(" \t\n", start[len - 1]); len--)
		start[len - 1] = 0;
	return start;
}

int event_specs_parse_at(const char *text, const struct host *host, const char *sysfs_root,
			 event_specs *ret, struct diag *d)
{
	struct parser p = {.host = host, .sysfs_root = sysfs_root, .d = d};
	CLEANUP(freep) char *copy = NULL;
	char *rest, *event;
	int err = 0;

	if (strnlen(text, TEXT_BYTES_MAX) == TEXT_BYTES_MAX)
		return diag_set(d, -E2BIG, "the list of events is too long");
	rest = copy = strdup(text);
	if (!copy)
		return diag_errno(d, -ENOMEM, "reading the list of events");
	while (!err && (event = next_event(&rest)))
		err = event_parse(&p, event);
	if (!err && array_reserve(ret, ret->n + p.specs.n) < 0)
		err = diag_errno(d, -ENOMEM, "reading the list of events");
	if (err) {
		event_specs_release(&p.specs);
		return err;
	}
	memcpy(ret->v + ret->n, p.specs.v, p.specs.n * sizeof(*p.specs.v));
	ret->n += p.specs.n;
	array_release(&p.specs);
	return 0;
}

int event_specs_parse(const char *text, const struct host *host, event_specs *ret, struct diag *d)
{
	return event_specs_parse_at(text, host, PMU_SYSFS_ROOT, ret, d);
}
