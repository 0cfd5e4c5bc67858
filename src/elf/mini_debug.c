/* SPDX-License-Identifier: BSD-2-Clause */
/* MiniDebugInfo: https://sourceware.org/gdb/current/onlinedocs/gdb.html/MiniDebugInfo.html */
#include "elf_struct.h"
#include <lzma.h>

/* Chromium's would have about 40 MB. Keeps a few hostile bytes from growing without end. */
#define UNPACKED_BYTES_MAX (256U << 20)
/* xz -9 needs 65 MB. */
#define DECODER_BYTES_MAX (128U << 20)

static int unpack(const Elf_Data *data, struct strbuf *out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	enum { PART = 1 << 16 };
	CLEANUP(freep) uint8_t *part = malloc(PART);
	lzma_ret state = LZMA_OK;
	int err = 0;

	if (!part || lzma_stream_decoder(&stream, DECODER_BYTES_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	while (state == LZMA_OK && !err) {
		stream.next_out = part;
		stream.avail_out = PART;
		state = lzma_code(&stream, LZMA_FINISH);
		strbuf_add(out, (const char *)part, PART - stream.avail_out);
		if (out->failed)
			err = -ENOMEM;
		else if (out->n > UNPACKED_BYTES_MAX)
			err = -EFBIG;
	}
	lzma_end(&stream);
	return err ? err : state == LZMA_STREAM_END ? 0 : -EBADMSG;
}

int elf_mini_debug_open(struct elf_file *f, struct elf_file **ret)
{
	CLEANUP(strbuf_release) struct strbuf image = {0};
	GElf_Shdr shdr;
	Elf_Data *data;
	Elf_Scn *scn = elf_section_find(f, SHT_PROGBITS, ".gnu_debugdata", &shdr);
	int err;

	if (!scn)
		return -ENOENT;
	err = elf_section_read(scn, &shdr, UNPACKED_BYTES_MAX, &data);
	if (!err)
		err = unpack(data, &image);
	if (!err)
		err = elf_file_open_memory(image.v, image.n, ret);
	return err == -ENOEXEC ? -EBADMSG : err;
}
