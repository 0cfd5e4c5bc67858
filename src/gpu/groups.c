/* SPDX-License-Identifier: BSD-2-Clause */
/* What kind of work a call is: escapes by number, all others by the words of the name that the
 * tables have for them. What has no name there has no group. */
#include "tables.h"

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

/* Whether a list has the word of n bytes. */
static bool has(const char *const *list, const char *word, size_t n)
{
	for (; *list; list++)
		if (strlen(*list) == n && !memcmp(*list, word, n))
			return true;
	return false;
}

/* The first word of a name, words being joined by '_', that is in the list; NULL: none. */
static const char *find_word(const char *name, const char *const *list)
{
	for (const char *at = name; *at;) {
		size_t n = strcspn(at, "_");

		if (has(list, at, n))
			return at;
		at += n + (at[n] == '_');
	}
	return NULL;
}

struct word_group {
	const char *const *words;
	const char *group;
};

/* The first group that has one of the name's words; NULL: none. */
static const char *by_words(const char *name, const struct word_group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (find_word(name, groups[i].words))
			return groups[i].group;
	return NULL;
}

/* --- controls --------------------------------------------------------------------------------- */

/* Whether a control only reads: its first verb says so, or it has none and says what it tells. */
static bool only_reads(const char *name)
{
	static const char *const reads[] = {"GET",   "QUERY", "READ",    "IS",
					    "CHECK", "POLL",  "THERMAL", NULL};
	static const char *const tells[] = {"INFO",      "STATUS",   "CAPS", "VERSION",
					    "SUPPORTED", "COUNTERS", NULL};
	static const char *const changes[] = {
		"ADD",      "ALLOC",      "ATTACH",   "BIND",    "CLEAR",      "CONFIGURE",
		"CREATE",   "DESTROY",    "DETACH",   "DISABLE", "ENABLE",     "EVICT",
		"EXEC",     "EXECUTE",    "EXPORT",   "FLUSH",   "FORCE",      "FREE",
		"FREEZE",   "IMPORT",     "INIT",     "INJECT",  "INVALIDATE", "MAP",
		"NOTIFY",   "PERFORM",    "POST",     "PREEMPT", "PROGRAM",    "PROMOTE",
		"REGISTER", "RELEASE",    "REMOVE",   "RESERVE", "RESET",      "RESTORE",
		"RESUME",   "SAVE",       "SCHEDULE", "SEND",    "SERVICE",    "SET",
		"SETUP",    "START",      "STOP",     "SUSPEND", "TRIGGER",    "UNBIND",
		"UNMAP",    "UNREGISTER", "UPDATE",   "WAIT",    NULL};
	static const char *const writes[] = {"WRITE", NULL};
	const char *verb = find_word(name, reads), *change = find_word(name, changes);

	if (find_word(name, writes))
		return false;
	if (verb)
		return !change || verb < change;
	return !change && find_word(name, tells);
}

/* By the class of the object that is controlled (the number's upper half), where the command's own
 * words do not say: "NVA06C_CTRL_CMD_BIND". */
static const char *by_class(uint32_t class)
{
	static const struct {
		uint32_t class;
		const char *group;
	} all[] = {
		{0x0002, "memory"},   {0x003e, "memory"}, {0x0041, "memory"}, {0x0076, "memory"},
		{0x00e0, "memory"},   {0x00f8, "memory"}, {0x00f9, "memory"}, {0x00fb, "memory"},
		{0x00fd, "memory"},   {0x00fe, "memory"}, {0x503c, "memory"}, {0x90f1, "memory"},
		{0x00da, "sync"},     {0x9074, "sync"},   {0x90cd, "events"}, {0x9067, "channels"},
		{0xa06c, "channels"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].class == class)
			return all[i].group;
	return (class & 0xff) == 0x6f ? "channels" : NULL; /* …_CHANNEL_GPFIFO_… */
}

static const char *group_of_command(const char *command, uint32_t class)
{
	static const char *const events[] = {
		"EVENT", "EVENTS", "NOTIFICATION", "NOTIFY", "EVTBUF", "NOTIFIER", NULL};
	static const char *const sync[] = {"SEMAPHORE", "SEMA", "SEM", "WAIT", "FENCE", NULL};
	static const char *const idle[] = {"IDLE", NULL};
	static const char *const channels[] = {"CHANNEL", "CHANNELS", "GPFIFO",    "FIFO",
					       "RUNLIST", "CTX",      "TIMESLICE", "PREEMPT",
					       "CTXSW",   NULL};
	static const char *const memory[] = {"MEM",    "MEMORY",  "VIDMEM", "SYSMEM", "FB",  "DMA",
					     "DMABUF", "VASPACE", "PTE",    "PDE",    "TLB", "BAR1",
					     "BAR2",   "SURFACE", "P2P",    NULL};
	static const struct word_group first[] = {{events, "events"}, {sync, "sync"}},
				       last[] = {{channels, "channels"}, {memory, "memory"}};
	const char *group = by_words(command, first, ARRAY_SIZE(first));

	if (!group && find_word(command, idle) && find_word(command, channels))
		group = "sync"; /* waits until they are */
	if (!group)
		group = by_class(class);
	if (!group)
		group = by_words(command, last, ARRAY_SIZE(last));
	return group ? group : "other";
}

/* Of several names of a number all have to read. */
static const char *group_of_control(const struct gpu_version *v, uint32_t number)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};
	const char *group = "queries";
	char *rest;

	if (!gpu_put_control(v, number, &names) || names.failed)
		return "other";
	rest = names.v;
	for (const char *name; (name = strsep(&rest, "/"));) {
		const char *command = strstr(name, "_CTRL_");

		command = command ? command + strlen("_CTRL_") : name;
		if (!only_reads(command) && str_eq(group, "queries"))
			group = group_of_command(command, number >> 16);
	}
	return group;
}

/* --- other calls ------------------------------------------------------------------------------ */

static const char *group_of_class(const struct gpu_version *v, uint32_t class)
{
	static const char *const secrets[] = {"CONFIDENTIAL", NULL};
	static const char *const events[] = {"EVENT", "NOTIFY", NULL};
	static const char *const channels[] = {"CHANNEL", "COMPUTE", "COPY",
					       "SHARE",   "INLINE",  NULL};
	static const char *const memory[] = {"MEMORY", "VASPACE", "DMA", "FB", "P2P", NULL};
	static const char *const sync[] = {"SEMAPHORE", NULL};
	static const struct word_group all[] = {{secrets, "other"},
						{events, "events"},
						{channels, "channels"},
						{memory, "memory"},
						{sync, "sync"}};
	CLEANUP(strbuf_release) struct strbuf name = {0};
	const char *group = NULL;

	if (gpu_put_class(v, class, &name))
		group = by_words(strbuf_str(&name), all, ARRAY_SIZE(all));
	return group ? group : "other";
}

static const char *group_of_uvm(const struct gpu_version *v, uint32_t number)
{
	static const char *const asks[] = {"IS", "GET", NULL};
	static const char *const events[] = {"EVENT",   "EVENTS",   "NOTIFICATION",
					     "COUNTER", "COUNTERS", NULL};
	static const char *const channels[] = {"CHANNEL", NULL};
	static const char *const memory[] = {"MEM",      "MEMORY",      "VASPACE",  "VA",
					     "RANGE",    "REGION",      "MAP",      "UNMAP",
					     "ALLOC",    "FREE",        "RESERVE",  "RELEASE",
					     "MIGRATE",  "MIGRATION",   "LOCATION", "ACCESSED",
					     "EXTERNAL", "DUPLICATION", "PAGEABLE", "PEER",
					     "DISCARD",  NULL};
	static const struct word_group all[] = {
		{asks, "queries"}, {events, "events"}, {channels, "channels"}, {memory, "memory"}};
	enum { PAGEABLE_MEM_ACCESS = 0x27, PAGEABLE_MEM_ACCESS_ON_GPU = 0x46 };
	CLEANUP(strbuf_release) struct strbuf name = {0};
	const char *group = NULL;

	if (!gpu_put_uvm(v, number, &name))
		return "other";
	if (number == PAGEABLE_MEM_ACCESS || number == PAGEABLE_MEM_ACCESS_ON_GPU)
		return "queries"; /* whether there is such access */
	group = by_words(strbuf_str(&name), all, ARRAY_SIZE(all));
	return group ? group : "other";
}

static const char *group_of_escape(uint32_t number)
{
	static const struct {
		uint32_t number;
		const char *group;
	} all[] = {
		{GPU_RM_VID_HEAP_CONTROL, "memory"},
		{GPU_RM_MAP_MEMORY, "memory"},
		{GPU_RM_UNMAP_MEMORY, "memory"},
		{GPU_RM_MAP_MEMORY_DMA, "memory"},
		{GPU_RM_UNMAP_MEMORY_DMA, "memory"},
		{0x54, "memory"}, /* RM_ALLOC_CONTEXT_DMA2 */
		{0x59, "memory"}, /* RM_BIND_CONTEXT_DMA */
		{0x5e, "memory"}, /* RM_UPDATE_DEVICE_MAPPING_INFO */
		{0xd9, "memory"}, /* EXPORT_TO_DMABUF_FD */
		{GPU_RM_IDLE_CHANNELS, "sync"},
		{GPU_RM_GET_EVENT_DATA, "events"},
		{0xce, "events"},  /* ALLOC_OS_EVENT */
		{0xcf, "events"},  /* FREE_OS_EVENT */
		{0x32, "queries"}, /* RM_CONFIG_GET */
		{0x37, "queries"}, /* RM_CONFIG_GET_EX */
		{0xc8, "queries"}, /* CARD_INFO */
		{0xd1, "queries"}, /* STATUS_CODE */
		{0xd2, "queries"}, /* CHECK_VERSION_STR */
		{0xd5, "queries"}, /* QUERY_DEVICE_INTR */
		{0xd6, "queries"}, /* SYS_PARAMS */
		{0xd7, "queries"}, /* NUMA_INFO */
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].number == number)
			return all[i].group;
	return "other";
}

static const char *group_of_rm(const struct gpu_version *v, const struct gpu_key *key)
{
	CLEANUP(strbuf_release) struct strbuf name = {0};

	if (!gpu_put_escape(v, key->number, &name))
		return "other";
	switch (key->number) {
	case GPU_RM_CONTROL:
		return key->flags & GPU_HAS_SELECTOR ? group_of_control(v, key->selector) : "other";
	case GPU_RM_ALLOC:
	case GPU_RM_ALLOC_OBJECT:
		return key->flags & GPU_HAS_SELECTOR ? group_of_class(v, key->selector) : "other";
	case GPU_RM_ALLOC_MEMORY:
		return "memory";
	default:
		return group_of_escape(key->number);
	}
}

const char *gpu_call_group(const struct gpu_version *v, const struct gpu_key *key)
{
	static const char *const kinds[GPU_KINDS] = {
		[GPU_OPEN] = "open",     [GPU_CLOSE] = "open",    [GPU_MMAP] = "memory",
		[GPU_MUNMAP] = "memory", [GPU_MREMAP] = "memory", [GPU_MAP_OVER] = "memory",
		[GPU_POLL] = "sync",     [GPU_EPOLL] = "sync",
	};

	if (key->kind < GPU_KINDS && kinds[key->kind])
		return kinds[key->kind];
	return key->class == GPU_CLASS_RM    ? group_of_rm(v, key)
	       : key->class == GPU_CLASS_UVM ? group_of_uvm(v, key->number)
					     : "other";
}
