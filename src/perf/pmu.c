/* SPDX-License-Identifier: BSD-2-Clause */
/* PMU/terms/: Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}. */
#include "event_names.h"
#include "event_spec.h"

#include <dirent.h>
#include <inspect/procfs.h>

#define TERMS_MAX 64
#define SYSFS_TEXT_MAX 4096
#define LISTED_MAX 12

struct pmu {
	const char *text; /* the whole event, as given */
	const char *name;
	char folder[512];
	struct perf_event_attr *attr;
	char *event_name; /* from name= */
	bool in_alias;    /* reading an events/ file: no further aliases */
	struct diag *d;
};

bool event_word_valid(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	return n && !s[n] && s[0] != '.' && n < NEAR_MISS_NAME_MAX;
}

/* Adds the names in a folder to near misses and, up to LISTED_MAX, to a list of what there is. */
static void folder_names(const char *folder, struct near_misses *near, struct strbuf *list)
{
	DIR *dir = opendir(folder);
	size_t n = 0;

	if (!dir)
		return;
	for (struct dirent *e; (e = readdir(dir));) {
		if (!event_word_valid(e->d_name))
			continue;
		near_misses_add(near, e->d_name);
		if (n++ < LISTED_MAX)
			strbuf_printf(list, "%s%s", list->n ? ", " : "", e->d_name);
	}
	if (n > LISTED_MAX)
		strbuf_puts(list, ", …");
	closedir(dir);
}

static int unknown_pmu(const struct pmu *p, const char *sysfs_root, int err)
{
	CLEANUP(strbuf_release) struct strbuf list = {0};
	struct near_misses near = {.word = p->name};

	diag_set(p->d, err, "event '%s': this host has no PMU '%s'", p->text, p->name);
	folder_names(sysfs_root, &near, &list);
	if (list.n)
		diag_why(p->d, "it has: %s", strbuf_str(&list));
	near_misses_advise(&near, "", p->d);
	return err;
}

static int unknown_term(const struct pmu *p, const char *term)
{
	CLEANUP(strbuf_release) struct strbuf list = {0};
	struct near_misses near = {.word = term};
	char folder[sizeof(p->folder) + 16];

	diag_set(p->d, -EINVAL, "event '%s': PMU '%s' has no term or event '%s'", p->text, p->name,
		 term);
	snprintf(folder, sizeof(folder), "%s/format", p->folder);
	folder_names(folder, &near, &list);
	snprintf(folder, sizeof(folder), "%s/events", p->folder);
	folder_names(folder, &near, &list);
	if (list.n)
		diag_why(p->d, "it has: %s", strbuf_str(&list));
	near_misses_advise(&near, "", p->d);
	return -EINVAL;
}

/* Puts a value into the bits that a format file names: "config1:0-7,32-35", lowest first. The
 * value's bits that found no place are returned; or -1 when the file makes no sense. */
static int64_t format_apply(const char *format, struct perf_event_attr *attr, uint64_t value)
{
	__u64 *words[] = {&attr->config, &attr->config1, &attr->config2};
	unsigned word = 0, first, last;
	const char *s = format;
	int used;

	if (!str_starts(s, "config"))
		return -1;
	s += strlen("config");
	if (*s == '1' || *s == '2')
		word = (unsigned)(*s++ - '0');
	if (*s != ':')
		return -1;
	do {
		s++;
		if (sscanf(s, "%2u%n", &first, &used) != 1)
			return -1;
		s += used;
		last = first;
		if (*s == '-') {
			if (sscanf(s + 1, "%2u%n", &last, &used) != 1)
				return -1;
			s += 1 + used;
		}
		if (first > last || last > 63)
			return -1;
		for (unsigned bit = first; bit <= last; bit++) {
			*words[word] &= ~(1ULL << bit);
			*words[word] |= (value & 1) << bit;
			value >>= 1;
		}
	} while (*s == ',');
	return value ? 1 : 0;
}

static int set_period(struct perf_event_attr *attr, uint64_t v)
{
	attr->freq = 0;
	attr->sample_period = v;
	return v ? 0 : -EINVAL;
}

static int set_freq(struct perf_event_attr *attr, uint64_t v)
{
	attr->freq = 1;
	attr->sample_freq = v;
	return v ? 0 : -EINVAL;
}

static int set_config(struct perf_event_attr *attr, uint64_t v)
{
	attr->config = v;
	return 0;
}

static int set_config1(struct perf_event_attr *attr, uint64_t v)
{
	attr->config1 = v;
	return 0;
}

static int set_config2(struct perf_event_attr *attr, uint64_t v)
{
	attr->config2 = v;
	return 0;
}

static const struct builtin_term {
	const char *name;
	int (*set)(struct perf_event_attr *attr, uint64_t v);
} builtin_terms[] = {
	{"config", set_config}, {"config1", set_config1}, {"config2", set_config2},
	{"period", set_period}, {"freq", set_freq},
};

static int term_value(const struct pmu *p, const char *term, const char *value, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(value, &end, 0);
	if (end == value || *end || errno || value[0] == '-' || value[0] == '+')
		return diag_set(p->d, -EINVAL, "event '%s': '%s' needs a number, not '%s'", p->text,
				term, value);
	*ret = v;
	return 0;
}

static int terms_parse(struct pmu *p, char *terms);

/* A name in the PMU's events/ folder stands for the terms in its file. */
static int alias_parse(struct pmu *p, const char *name)
{
	CLEANUP(strbuf_release) struct strbuf terms = {0};
	const char *names[] = {name, event_name_canonical(name)};
	char path[sizeof(p->folder) + NEAR_MISS_NAME_MAX + 16];
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(names) && err == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/events/%s", p->folder, names[i]);
		err = file_read(path, SYSFS_TEXT_MAX, &terms);
	}
	if (err)
		return err == -ENOENT
			       ? unknown_term(p, name)
			       : diag_errno(p->d, err, "event '%s': reading %s", p->text, path);
	if (!terms.n)
		return unknown_term(p, name);
	terms.v[strcspn(terms.v, "\n")] = 0;
	p->in_alias = true;
	err = terms_parse(p, terms.v);
	p->in_alias = false;
	return err;
}

static int format_term(struct pmu *p, const char *term, const char *value)
{
	CLEANUP(strbuf_release) struct strbuf format = {0};
	char path[sizeof(p->folder) + NEAR_MISS_NAME_MAX + 16];
	uint64_t v = 1;
	int64_t rest;
	int err;

	snprintf(path, sizeof(path), "%s/format/%s", p->folder, term);
	err = file_read(path, SYSFS_TEXT_MAX, &format);
	if (err == -ENOENT && !value && !p->in_alias)
		return alias_parse(p, term);
	if (err == -ENOENT)
		return unknown_term(p, term);
	if (err)
		return diag_errno(p->d, err, "event '%s': reading %s", p->text, path);
	if (value && (err = term_value(p, term, value, &v)))
		return err;
	rest = format_apply(strbuf_str(&format), p->attr, v);
	if (rest < 0)
		return diag_set(p->d, -EINVAL, "event '%s': %s is not understood", p->text, path);
	if (rest > 0)
		return diag_set(p->d, -EINVAL, "event '%s': %s=%s is more than its bits hold",
				p->text, term, value);
	return 0;
}

static int term_parse(struct pmu *p, char *term)
{
	char *value = strchr(term, '=');
	uint64_t v = 0;
	int err;

	if (value)
		*value++ = 0;
	if (!event_word_valid(term))
		return diag_set(p->d, -EINVAL, "event '%s': '%s' is not a term", p->text, term);
	if (value && str_eq(term, "name")) {
		free(p->event_name);
		p->event_name = strdup(value);
		return p->event_name ? 0 : diag_errno(p->d, -ENOMEM, "event '%s'", p->text);
	}
	for (size_t i = 0; value && i < ARRAY_SIZE(builtin_terms); i++) {
		if (!str_eq(term, builtin_terms[i].name))
			continue;
		err = term_value(p, term, value, &v);
		if (err)
			return err;
		err = builtin_terms[i].set(p->attr, v);
		return err ? diag_set(p->d, err, "event '%s': %s cannot be 0", p->text, term) : 0;
	}
	return format_term(p, term, value);
}

static int terms_parse(struct pmu *p, char *terms)
{
	size_t n = 0;
	char *term;

	while ((term = strsep(&terms, ","))) {
		int err;

		term += strspn(term, " ");
		if (!*term)
			continue;
		if (++n > TERMS_MAX)
			return diag_set(p->d, -E2BIG, "event '%s': more than %d terms", p->text,
					TERMS_MAX);
		err = term_parse(p, term);
		if (err)
			return err;
	}
	return 0;
}

int pmu_event_parse(const char *sysfs_root, const char *text, const char *pmu, char *terms,
		    struct perf_event_attr *attr, char **ret_name, struct diag *d)
{
	struct pmu p = {.text = text, .name = pmu, .attr = attr, .d = d};
	char path[sizeof(p.folder) + 16];
	int64_t type;
	int err;

	if (!event_word_valid(pmu))
		return diag_set(d, -EINVAL, "event '%s': '%s' is not the name of a PMU", text, pmu);
	if ((size_t)snprintf(p.folder, sizeof(p.folder), "%s/%s", sysfs_root, pmu) >=
	    sizeof(p.folder))
		return diag_set(d, -ENAMETOOLONG, "event '%s': the name is too long", text);
	snprintf(path, sizeof(path), "%s/type", p.folder);
	err = file_read_i64(path, &type);
	if (err)
		return unknown_pmu(&p, sysfs_root, err);
	if (type < 0 || type > UINT32_MAX)
		return unknown_pmu(&p, sysfs_root, -EINVAL);
	attr->type = (uint32_t)type;
	err = terms_parse(&p, terms);
	if (err) {
		free(p.event_name);
		return err;
	}
	*ret_name = p.event_name;
	return 0;
}
