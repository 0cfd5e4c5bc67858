/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.data files. Format: tools/perf/Documentation/perf.data-file-format.txt.
 * What perf record 6.x writes is read; what is written opens in perf report and perf script.
 */
#ifndef INSPECT_PERFDATA_H
#define INSPECT_PERFDATA_H

#include <inspect/diag.h>
#include <inspect/event.h>
#include <inspect/strbuf.h>

/* Feature bits of ours; perf skips numbers it does not know. */
enum {
	PERFDATA_FEAT_NAMES = 240, /* saved_names */
	PERFDATA_FEAT_NOTES = 241, /* "key=value\n" lines: quality that no record carries */
};

struct perfdata_build_id {
	char *path;
	uint8_t id[20];
	uint8_t size;
	bool kernel;
};

/* What the header says beside the events. Strings are NULL when not stated. */
struct perfdata_info {
	char *hostname, *os_release, *version, *arch, *cpu_desc, *command;
	uint32_t cpus_online;
	uint64_t first_sample_ns, last_sample_ns;
	ARRAY(struct perfdata_build_id) build_ids;
	uint8_t *tracing; /* TRACING_DATA, written only */
	size_t tracing_bytes;
	uint8_t *names; /* PERFDATA_FEAT_NAMES as stored */
	size_t names_bytes;
	char *notes;     /* PERFDATA_FEAT_NOTES as stored */
	char *damage;    /* one line on what was cut or damaged, NULL when whole */
	char *newer;     /* one line on what this program is too old to understand, NULL nothing */
	char *unread;    /* one line on what was recorded and is not handed on, NULL nothing */
	bool unfinished; /* the recorder did not end properly (no features) */
};
void perfdata_info_release(struct perfdata_info *i);

struct perfdata_writer;

/*
 * Creates the file (O_CREAT|O_EXCL|O_NOFOLLOW; an existing regular file is first renamed to
 * PATH.old) and writes header and attrs. "-": pipe mode on stdout. `replaced` (may be NULL) is set
 * when an old file was moved.
 */
int perfdata_create(const char *path, const struct event_table *events,
		    struct perfdata_writer **ret, bool *replaced, struct diag *d);

/* Appends whole records. */
int perfdata_write(struct perfdata_writer *w, const void *records, size_t size_bytes,
		   struct diag *d);

/* FINISHED_ROUND, and data.size rewritten to the last whole record: a reader sees up to here. */
int perfdata_round(struct perfdata_writer *w, struct diag *d);

/* Features (those set in info), final header. Pipe mode has no place for the two of ours: perf
 * stops at feature numbers that it does not know there. */
int perfdata_finish(struct perfdata_writer *w, const struct perfdata_info *info, struct diag *d);
uint64_t perfdata_bytes_written(const struct perfdata_writer *w);
void perfdata_writer_free(struct perfdata_writer *w); /* without finish: file stays as it is */

/* For a measurement that never began: frees the writer, removes its file, and puts an older one
 * that was moved back to its place. */
void perfdata_discard(struct perfdata_writer *w);

struct perfdata_reader;

/* Opens PATH ("-": stdin; pipe mode is recognised by its header). Features are read at once where
 * the file can seek. Failure: one line naming the file and the place. */
int perfdata_open(const char *path, struct perfdata_reader **ret, struct diag *d);
/* The same from a descriptor, of which head_bytes were read already (to recognise what a pipe
 * holds). The descriptor stays the caller's, and open until the reader is freed. */
int perfdata_open_fd(int fd, const void *head, size_t head_bytes, const char *name,
		     struct perfdata_reader **ret, struct diag *d);
void perfdata_reader_free(struct perfdata_reader *r);

/* Grow while a pipe-mode file is read. Borrowed. */
const struct event_table *perfdata_events(const struct perfdata_reader *r);
const struct perfdata_info *perfdata_info(const struct perfdata_reader *r);

/*
 * Every record in file order, decompressed, FINISHED_ROUND included. A damaged or cut file ends
 * the walk at the damage with 0 and info->damage set. Records stay valid until the reader is freed
 * when perfdata_stable(); else during the callback.
 */
int perfdata_read(struct perfdata_reader *r, record_fn *fn, void *ctx, struct diag *d);
bool perfdata_stable(const struct perfdata_reader *r);

/* True when the bytes (at least 8) begin a perf.data file or stream. */
bool perfdata_is_header(const void *bytes, size_t size);

#endif
