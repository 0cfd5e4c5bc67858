/* SPDX-License-Identifier: BSD-2-Clause */
/* Each rule and name of the TSV files in src/gpu, read here again: what the generator, the look-ups
 * and the ranges of versions make of them. */
#include <inspect/cuda.h>
#include <inspect/gpu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { CELLS = 12 };

/* Calls fn with the cells of each row; how many rows. */
typedef void row_fn(char **cell, void *ctx);
static size_t each_row(const char *table, row_fn *fn, void *ctx)
{
	CLEANUP(fclosep) FILE *file = NULL;
	char path[64], line[1024];
	size_t n = 0;

	snprintf(path, sizeof(path), "src/gpu/%s.tsv", table);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file)); /* headings */
	while (fgets(line, sizeof(line), file)) {
		char *cell[CELLS] = {0}, *rest = line;

		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < CELLS && rest; i++)
			cell[i] = strsep(&rest, "\t");
		fn(cell, ctx);
		n++;
	}
	return n;
}

static struct gpu_version version(const char *text)
{
	struct gpu_version v;

	assert_int_equal(gpu_version_parse(text, &v), 0);
	return v;
}

static const struct gpu_layout *find(const gpu_layouts *l, uint32_t class, uint32_t number,
				     uint32_t size_bytes)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].key.class == class && l->v[i].key.number == number &&
		    l->v[i].key.size_bytes == size_bytes)
			return &l->v[i].layout;
	return NULL;
}

/* --- layouts ---------------------------------------------------------------------------------- */

static void check_rule_at(char **cell, const char *at)
{
	struct gpu_version v = version(at);
	gpu_layouts layouts = {0};
	const struct gpu_layout *l;
	uint32_t number = (uint32_t)strtoul(cell[1], NULL, 16);

	assert_int_equal(gpu_layouts_of(&v, &layouts), 0);
	l = find(&layouts, GPU_CLASS_RM, number, (uint32_t)strtoul(cell[2], NULL, 10));
	if (number == GPU_XFER_CMD) {
		assert_null(l); /* resolved before a layout is looked for */
	} else {
		assert_non_null(l);
		assert_int_equal(l->status_off, atoi(cell[7]));
		assert_int_equal(l->selector_off, str_ends(cell[6], ".tsv") ? atoi(cell[5]) : -1);
	}
	array_release(&layouts);
}

static void check_rule(char **cell, void *ctx UNUSED)
{
	char *last = strchr(cell[8], '-');

	*last++ = '\0';
	check_rule_at(cell, cell[8]);
	check_rule_at(cell, last);
}

static void test_every_rule(void **state UNUSED)
{
	assert_int_equal(each_row("decode_rules", check_rule, NULL), 37);
}

static void check_uvm(char **cell, void *ctx UNUSED)
{
	for (int i = 7; i <= 8; i++) {
		struct gpu_version v = version(cell[i]);
		gpu_layouts layouts = {0};
		const struct gpu_layout *l;

		assert_int_equal(gpu_layouts_of(&v, &layouts), 0);
		l = find(&layouts, GPU_CLASS_UVM, (uint32_t)strtoul(cell[1], NULL, 16), 0);
		assert_non_null(l);
		assert_int_equal(l->status_off, atoi(cell[4]));
		assert_int_equal(l->length_off, atoi(cell[6]));
		array_release(&layouts);
	}
}

static void test_every_uvm_layout(void **state UNUSED)
{
	assert_int_equal(each_row("uvm_decode", check_uvm, NULL), 89);
}

/* RM_ALLOC has three sizes, of which two changed what they mean. */
static void test_alloc_layouts(void **state UNUSED)
{
	static const struct {
		const char *version;
		uint32_t size_bytes;
		int32_t status_off; /* -2: no layout */
	} cases[] = {
		{"515.43.04", 32, 24}, {"525.147.05", 32, 24}, {"530.41.03", 32, 24},
		{"535.54.03", 32, 28}, {"550.54.14", 32, 28},  {"515.43.04", 40, 32},
		{"520.61.05", 40, 32}, {"525.47.04", 40, 36},  {"530.41.03", 40, 36},
		{"535.54.03", 40, -2}, {"535.54.03", 48, 40},  {"595.45.04", 48, 40},
		{"525.47.04", 48, -2}, {"600.10.01", 48, 40},  {"470.10.01", 32, -2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_version v = version(cases[i].version);
		gpu_layouts layouts = {0};
		const struct gpu_layout *l;

		assert_int_equal(gpu_layouts_of(&v, &layouts), 0);
		l = find(&layouts, GPU_CLASS_RM, GPU_RM_ALLOC, cases[i].size_bytes);
		assert_int_equal(l ? l->status_off : -2, cases[i].status_off);
		array_release(&layouts);
	}
}

/* Without a version only what never changed. */
static void test_no_version(void **state UNUSED)
{
	struct gpu_version v = {0};
	gpu_layouts layouts = {0};

	assert_int_equal(gpu_layouts_of(&v, &layouts), 0);
	assert_non_null(find(&layouts, GPU_CLASS_RM, GPU_RM_CONTROL, 32));
	assert_null(find(&layouts, GPU_CLASS_RM, GPU_RM_ALLOC, 32));
	assert_null(find(&layouts, GPU_CLASS_UVM, 0x22, 0));
	array_release(&layouts);
}

/* --- names ------------------------------------------------------------------------------------ */

struct names {
	bool (*put)(const struct gpu_version *v, uint32_t number, struct strbuf *out);
	const char *prefix;
	size_t aliases; /* rows whose number is told by another name */
};

/* Whether `name` is one of those that a '/' joins. */
static bool is_one_of(const char *all, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = all; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (!strncmp(at, name, n) && (!at[n] || at[n] == '/'))
			return true;
	return false;
}

static void check_name(char **cell, void *ctx)
{
	struct names *n = ctx;
	const char *name = cell[0];

	if (str_starts(name, n->prefix))
		name += strlen(n->prefix);
	for (int i = 3; i <= 4; i++) {
		struct gpu_version v = version(cell[i]);
		CLEANUP(strbuf_release) struct strbuf got = {0};
		uint32_t number = (uint32_t)strtoul(cell[1], NULL, 0);
		bool found = n->put(&v, number, &got);

		if (found && is_one_of(strbuf_str(&got), name))
			continue;
		/* Opaque controls, and aliases of classes. */
		assert_true(n->put == gpu_put_class ||
			    (n->put == gpu_put_control && number & 0x8000 && !found));
		n->aliases++;
	}
}

static bool put_status(const struct gpu_version *v, uint32_t number, struct strbuf *out)
{
	gpu_put_status(v, number, out);
	return !strstr(strbuf_str(out), "unknown");
}

static void test_every_name(void **state UNUSED)
{
	struct names escapes = {gpu_put_escape, "NV_ESC_", 0}, uvm = {gpu_put_uvm, "", 0},
		     controls = {gpu_put_control, "", 0}, classes = {gpu_put_class, "", 0},
		     functions = {gpu_put_function, "NVOS32_FUNCTION_", 0},
		     status = {put_status, "", 0};

	assert_int_equal(each_row("nv_escapes", check_name, &escapes), 42);
	assert_int_equal(each_row("uvm_ioctls", check_name, &uvm), 77);
	assert_int_equal(each_row("rm_ctrl", check_name, &controls), 1903);
	assert_int_equal(each_row("rm_classes", check_name, &classes), 377);
	assert_int_equal(each_row("nvos32_functions", check_name, &functions), 13);
	assert_int_equal(each_row("rm_status", check_name, &status), 154);
	assert_int_equal(escapes.aliases + uvm.aliases + functions.aliases + status.aliases, 0);
	assert_true(classes.aliases < 2 * 377 / 2);
}

static void test_moved_names(void **state UNUSED)
{
	static const struct {
		const char *version;
		uint32_t status;
		const char *want;
	} cases[] = {
		{"535.54.03", 0x51, "NV_ERR_NO_MEMORY"},
		{"590.48.01", 0x8b, "NV_ERR_DMA_XFER_FAILED"},
		{"595.45.04", 0x8b, "NV_ERR_OPERATION_ABORTED"},
		{"535.54.03", 0x12345, "0x12345 unknown"},
		{"470.10.01", 0x51, "0x51 unknown"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_version v = version(cases[i].version);
		CLEANUP(strbuf_release) struct strbuf got = {0};

		gpu_put_status(&v, cases[i].status, &got);
		assert_string_equal(strbuf_str(&got), cases[i].want);
	}
}

static void test_calls(void **state UNUSED)
{
	static const struct {
		const char *version;
		struct gpu_key key;
		const char *want, *group;
	} cases[] = {
		{"535.54.03",
		 {.kind = GPU_IOCTL,
		  .class = GPU_CLASS_RM,
		  .number = 0x2b,
		  .size_bytes = 48,
		  .selector = 0x50a0,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_ALLOC NV50_MEMORY_VIRTUAL",
		 "memory"},
		{"535.54.03",
		 {.kind = GPU_IOCTL,
		  .class = GPU_CLASS_RM,
		  .number = 0x2b,
		  .size_bytes = 48,
		  .selector = 0xc86f,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",
		 "channels"},
		{"535.54.03",
		 {.kind = GPU_IOCTL,
		  .class = GPU_CLASS_RM,
		  .number = 0x2a,
		  .size_bytes = 32,
		  .selector = 0x101,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION",
		 "queries"},
		{"535.54.03",
		 {.kind = GPU_IOCTL,
		  .class = GPU_CLASS_RM,
		  .number = 0x2a,
		  .size_bytes = 32,
		  .selector = 0x2080fffe,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_CONTROL 0x2080fffe unknown",
		 "other"},
		{"535.54.03",
		 {.kind = GPU_IOCTL,
		  .class = GPU_CLASS_RM,
		  .number = 0x2b,
		  .size_bytes = 40,
		  .flags = GPU_NO_LAYOUT},
		 "RM_ALLOC 40 bytes unknown",
		 "other"},
		{"535.54.03",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_RM, .number = 0x77},
		 "ioctl 0x77 unknown",
		 "other"},
		/* Its meaning changed. */
		{"535.288.01",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_RM, .number = 0x5f},
		 "RM_NVLOG_CTRL",
		 "other"},
		{"550.54.14",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_RM, .number = 0x5f},
		 "RM_LOCKLESS_DIAGNOSTIC",
		 "other"},
		{"535.54.03",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_UVM, .number = 33},
		 "UVM_MAP_EXTERNAL_ALLOCATION",
		 "memory"},
		{"535.54.03",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_UVM, .number = 0x50},
		 "UVM 0x50 unknown",
		 "other"},
		{"595.45.04",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_UVM, .number = 0x50},
		 "UVM_DISCARD",
		 "memory"},
		{"535.54.03",
		 {.kind = GPU_IOCTL, .class = GPU_CLASS_OTHER, .number = 0xc0206442},
		 "_IOWR('d', 0x42, 32)",
		 "other"},
		{"535.54.03", {.kind = GPU_POLL, .class = GPU_CLASS_RM}, "poll", "sync"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_version v = version(cases[i].version);
		CLEANUP(strbuf_release) struct strbuf got = {0};

		gpu_put_call(&v, &cases[i].key, &got);
		assert_string_equal(strbuf_str(&got), cases[i].want);
		assert_string_equal(gpu_call_group(&v, &cases[i].key), cases[i].group);
	}
}

/* What reads is a query; what is done to events, channels and memory, or waits, is none. */
static void test_groups(void **state UNUSED)
{
	static const struct {
		uint32_t escape, selector;
		const char *name, *group; /* the name it has, so that the number is right */
	} cases[] = {
		{0x2a, 0x20800102, "NV2080_CTRL_CMD_GPU_GET_INFO_V2", "queries"},
		{0x2a, 0x2080012f, "NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS", "queries"},
		{0x2a, 0x20800513, "NV2080_CTRL_CMD_THERMAL_SYSTEM_EXECUTE_V2", "queries"},
		{0x2a, 0x0a04, "NV0000_CTRL_CMD_SYNC_GPU_BOOST_GROUP_INFO", "queries"},
		{0x2a, 0x20800301, "NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION", "events"},
		{0x2a, 0xa06f0103, "NVA06F_CTRL_CMD_GPFIFO_SCHEDULE", "channels"},
		{0x2a, 0xa06c0102, "NVA06C_CTRL_CMD_BIND", "channels"},
		{0x2a, 0x2080110b, "NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS", "channels"},
		{0x2a, 0x00801714, "NV0080_CTRL_CMD_FIFO_IDLE_CHANNELS", "sync"},
		{0x2a, 0x00da0003, "NV_SEMAPHORE_SURFACE_CTRL_CMD_REGISTER_WAITER", "sync"},
		{0x2a, 0x2080130e, "NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE", "memory"},
		{0x2a, 0x503c0104, "NV503C_CTRL_CMD_REGISTER_VIDMEM", "memory"},
		{0x2a, 0x00fd0104, "NV00FD_CTRL_CMD_ATTACH_GPU", "memory"},
		{0x2a, 0x2080200a, "NV2080_CTRL_CMD_PERF_BOOST", NULL},
		{0x2a, 0x2080fffe, "0x2080fffe unknown", "other"},
		{0x2b, 0x3e, "NV01_MEMORY_SYSTEM", "memory"},
		{0x2b, 0x70, "NV01_MEMORY_VIRTUAL", "memory"},
		{0x2b, 0x41, "NV01_ROOT_CLIENT", "other"},
		{0x2b, 0x79, "NV01_EVENT_OS_EVENT", "events"},
		{0x2b, 0xc8b5, "HOPPER_DMA_COPY_A", "channels"},
		{0x2b, 0xcb33, "NV_CONFIDENTIAL_COMPUTE", "other"},
		{0x2b, 0xfffe, "0xfffe unknown", "other"},
	};
	struct gpu_version v = version("580.65.06");

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct gpu_key key = {.kind = GPU_IOCTL,
					    .class = GPU_CLASS_RM,
					    .number = cases[i].escape,
					    .selector = cases[i].selector,
					    .flags = GPU_HAS_SELECTOR};
		CLEANUP(strbuf_release) struct strbuf got = {0};

		gpu_put_call(&v, &key, &got);
		assert_non_null(strchr(strbuf_str(&got), ' '));
		assert_string_equal(strchr(strbuf_str(&got), ' ') + 1, cases[i].name);
		assert_string_equal(gpu_call_group(&v, &key),
				    cases[i].group ? cases[i].group : "other");
	}
}

/* A command that reads is no query without its name: of a version that does not have it. */
static void test_unknown(void **state UNUSED)
{
	static const struct {
		const char *version;
		struct gpu_key key;
		const char *want;
	} cases[] = {
		/* an opaque command: its number says nothing */
		{"550.54.14",
		 {.class = GPU_CLASS_RM,
		  .number = 0x2a,
		  .selector = 0x20808102,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_CONTROL 0x20808102 unknown"},
		/* gone before that version, and not there yet */
		{"595.45.04",
		 {.class = GPU_CLASS_RM,
		  .number = 0x2a,
		  .selector = 0x103,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_CONTROL 0x103 unknown"},
		{"515.43.04",
		 {.class = GPU_CLASS_RM,
		  .number = 0x2b,
		  .size_bytes = 32,
		  .selector = 0x50,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_ALLOC 0x50 unknown"},
		/* a message of GSP's firmware is no class */
		{"595.45.04",
		 {.class = GPU_CLASS_RM,
		  .number = 0x2b,
		  .selector = 0x85b5,
		  .flags = GPU_HAS_SELECTOR},
		 "RM_ALLOC 0x85b5 unknown"},
		/* older than the tables: no name at all */
		{"470.57.02",
		 {.class = GPU_CLASS_RM,
		  .number = 0x2a,
		  .selector = 0x101,
		  .flags = GPU_HAS_SELECTOR},
		 "ioctl 0x2a unknown 0x101 unknown"},
		{"470.57.02", {.class = GPU_CLASS_UVM, .number = 0x22}, "UVM 0x22 unknown"},
		/* a field that could not be read */
		{"550.54.14", {.class = GPU_CLASS_RM, .number = 0x2a}, "RM_CONTROL"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_version v = version(cases[i].version);
		struct gpu_key key = cases[i].key;
		CLEANUP(strbuf_release) struct strbuf got = {0};

		key.kind = GPU_IOCTL;
		gpu_put_call(&v, &key, &got);
		assert_string_equal(strbuf_str(&got), cases[i].want);
	}
}

static void test_versions(void **state UNUSED)
{
	static const char *const bad[] = {"", "535", "x.1.2", "535.1.2.3.4x", "5355.1.1", ".5"};
	struct gpu_version v;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(gpu_version_parse(bad[i], &v), -EINVAL);
	assert_false(version("595.45.04").assumed);
	assert_true(version("600.1").assumed);
	assert_int_equal(version("600.1").table, 595045004);
	assert_int_equal(version("535.104.05").table, 535054003);
	assert_int_equal(version("470.1").table, 0);
	assert_int_equal(gpu_version_read("/nonexistent", &v), -ENOENT);
}

static const char *cuda_name(const char *symbol)
{
	int i = cuda_function_find(symbol, NULL);

	return i < 0 ? "" : cuda_functions[i].name;
}

static void test_cuda_variants(void **state UNUSED)
{
	static const struct {
		const char *symbol, *want;
	} cases[] = {
		{"cuMemAlloc", "cuMemAlloc"},
		{"cuMemAlloc_v2", "cuMemAlloc"},
		{"cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"},
		{"cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"},
		{"cuStreamSynchronize_ptsz", "cuStreamSynchronize"},
		{"cuLaunchKernelEx_ptsz", "cuLaunchKernelEx"},
		{"cuMemsetD2D32Async_ptsz", "cuMemsetD2D32Async"},
		{"cuMemcpy3DPeerAsync_ptsz", "cuMemcpy3DPeerAsync"},
		{"cuCtxSynchronize_v2", "cuCtxSynchronize"},
		{"cuLaunch", "cuLaunch"},
		{"cuLaunchGridAsync", "cuLaunchGridAsync"},
		{"cuLaunchCooperativeKernelMultiDevice", "cuLaunchCooperativeKernelMultiDevice"},
		{"cuMemGetInfo_v2", ""},
		{"cuMemAllocator", ""},
		{"cuMemAlloc_v", ""},
		{"cuMemAlloc_v2x", ""},
		{"cuInit", ""},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(cuda_name(cases[i].symbol), cases[i].want);
}

/* NVOS32_PARAMETERS (nvos.h): where the handle and the size of a heap's function are. */
static void test_heap(void **state UNUSED)
{
	static const struct {
		uint32_t function;
		int object, length;
		uint64_t want_bytes;
		enum gpu_effect effect;
	} cases[] = {
		{1, 44, 88, 4096, GPU_TAKES},  {2, 44, 88, 4096, GPU_TAKES},
		{3, 44, -1, 0, GPU_GIVES},     {5, -1, -1, 0, GPU_NO_EFFECT},
		{6, 44, 88, 4096, GPU_TAKES},  {14, 44, 80, 4096, GPU_TAKES},
		{27, 40, 72, 4097, GPU_TAKES}, {18, -1, -1, 0, GPU_NO_EFFECT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpu_key key = {.kind = GPU_IOCTL,
				      .class = GPU_CLASS_RM,
				      .number = GPU_RM_VID_HEAP_CONTROL,
				      .selector = cases[i].function,
				      .flags = GPU_HAS_SELECTOR};
		const uint64_t bytes = 4096;
		const uint32_t object = 0x77, parent = 0xc1;
		uint8_t head[GPU_HEAD_BYTES] = {0};
		struct gpu_fields f;

		memcpy(head + 4, &parent, 4);
		if (cases[i].object >= 0)
			memcpy(head + cases[i].object, &object, 4);
		if (cases[i].length >= 0)
			memcpy(head + cases[i].length, &bytes, 8);
		gpu_fields_read(&key, head, sizeof(head), &f);
		assert_int_equal(f.parent, parent);
		assert_int_equal(f.have & GPU_OBJECT ? f.object : 0,
				 cases[i].object >= 0 ? object : 0);
		assert_int_equal(f.have & GPU_LENGTH ? f.length_bytes : 0, cases[i].want_bytes);
		assert_int_equal(gpu_call_effect(&key), cases[i].effect);
		key.flags = 0; /* nobody knows the function */
		assert_int_equal(gpu_call_effect(&key), GPU_NO_EFFECT);
	}
}

/* By cuda.h: the arguments of a variant are those of its version. */
static void test_cuda_arguments(void **state UNUSED)
{
	static const struct {
		const char *symbol;
		struct cuda_arguments want;
	} cases[] = {
		{"cuMemAlloc", {.bytes = 2, .narrow = true}},
		{"cuMemAlloc_v2", {.bytes = 2}},
		{"cuMemAllocManaged", {.bytes = 2}}, /* its first version has 64 bits */
		{"cuMemcpyAtoHAsync_v2_ptsz", {.bytes = 4, .stream = 5}},
		{"cuMemcpyAtoA_v2_ptds", {.bytes = 5}},
		{"cuMemcpy2DAsync",
		 {.bytes = 1, .fields = 2, .offset = 84, .stream = 2, .narrow = true}},
		{"cuMemcpy2DAsync_v2", {.bytes = 1, .fields = 2, .offset = 112, .stream = 2}},
		{"cuMemcpy3D", {.bytes = 1, .fields = 3, .offset = 128, .narrow = true}},
		{"cuMemcpy3DPeer_ptds", {.bytes = 1, .fields = 3, .offset = 176}},
		{"cuMemPrefetchAsync_ptsz", {.bytes = 2, .stream = 4}},
		{"cuMemPrefetchAsync_v2_ptsz", {.bytes = 2, .stream = 5}},
		{"cuMemcpyBatchAsync", {.stream = 9}},
		{"cuMemcpyBatchAsync_v2", {.stream = 8}},
		{"cuMemsetD2D16Async", {.bytes = 4, .times = 5, .shift = 1, .stream = 6}},
		{"cuMemsetD2D32", {.bytes = 4, .times = 5, .shift = 2, .narrow = true}},
		{"cuLaunchKernelEx", {.stream = 1, .stream_off = 32}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cuda_arguments got;

		assert_true(cuda_function_find(cases[i].symbol, &got) >= 0);
		assert_memory_equal(&got, &cases[i].want, sizeof(got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rule),    cmocka_unit_test(test_every_uvm_layout),
		cmocka_unit_test(test_alloc_layouts), cmocka_unit_test(test_no_version),
		cmocka_unit_test(test_every_name),    cmocka_unit_test(test_moved_names),
		cmocka_unit_test(test_calls),         cmocka_unit_test(test_groups),
		cmocka_unit_test(test_unknown),       cmocka_unit_test(test_versions),
		cmocka_unit_test(test_cuda_variants), cmocka_unit_test(test_cuda_arguments),
		cmocka_unit_test(test_heap),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
