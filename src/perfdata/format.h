/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixed parts of a perf.data file (tools/perf/util/header.h). */
#ifndef PERFDATA_FORMAT_H
#define PERFDATA_FORMAT_H

#include <inspect/perfdata.h>

#define PERFDATA_MAGIC 0x32454c4946524550ULL /* "PERFILE2" as a little-endian word */
#define PIPE_HEADER_BYTES 16U /* magic and size: what a pipe-mode stream begins with */

struct file_section {
	uint64_t off, size_bytes;
};

struct file_header {
	uint64_t magic, header_bytes;
	uint64_t attr_bytes; /* of one entry of attrs: an attr and the section of its ids */
	struct file_section attrs, data, event_types;
	uint64_t features[4]; /* bit map; their sections are listed after the data */
};
_Static_assert(sizeof(struct file_header) == 104, "the layout of the file");

#define FEATURE_BITS 256U

enum feature {
	FEAT_TRACING_DATA = 1,
	FEAT_BUILD_ID = 2,
	FEAT_HOSTNAME = 3,
	FEAT_OS_RELEASE = 4,
	FEAT_VERSION = 5,
	FEAT_ARCH = 6,
	FEAT_NR_CPUS = 7,
	FEAT_CPU_DESC = 8,
	FEAT_COMMAND = 11,
	FEAT_EVENT_DESC = 12,
	FEAT_SAMPLE_TIME = 21,
	FEAT_CLOCK_ID = 23,
	FEAT_DIR_FORMAT = 24,
	FEAT_COMPRESSED = 27,
};

/* Begins an entry of the BUILD_ID feature and a HEADER_BUILD_ID record; the path follows. */
struct build_id_record {
	struct perf_event_header header;
	int32_t pid;
	uint8_t id[20];
	uint8_t id_bytes;
	uint8_t reserved[3];
};
_Static_assert(sizeof(struct build_id_record) == 36, "the layout of the file");

#define MISC_BUILD_ID_SIZE (1U << 15) /* id_bytes is set; without it an id has 20 bytes */
#define NAME_ALIGN 64U                /* strings of features are padded to it */

/* Record types that only matter here. */
enum {
	EVENT_UPDATE_NAME = 2,
};

#endif
