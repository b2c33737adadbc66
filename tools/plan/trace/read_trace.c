#include "tools/plan/trace/read_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "planner/common/watch.h"

#define BLOCK_RECORDS 8192 /* how many records trace_write puts into one block of the file */

struct reader {
    struct trace *trace;
    struct plan_error *error;
    const unsigned char *at;
    const unsigned char *end;
    size_t room;
    uint32_t block;
};

bool trace_looks_like(const struct file_text *text) {
    return text->size >= sizeof BFC_TRACE_MAGIC &&
           memcmp(text->bytes, BFC_TRACE_MAGIC, sizeof BFC_TRACE_MAGIC) == 0;
}

void trace_free(struct trace *trace) {
    free(trace->records);
    stacks_free(&trace->stacks);
    free(trace->settings);
    *trace = (struct trace){0};
}

static bool read_header(struct reader *reader) {
    struct bfc_trace_header *header = &reader->trace->header;
    const char *path = reader->trace->path;
    if ((size_t)(reader->end - reader->at) < sizeof *header)
        return plan_fail(reader->error, "%s: header: the file ends within it", path);
    memcpy(header, reader->at, sizeof *header);
    if (header->byte_order != BFC_TRACE_BYTE_ORDER)
        return plan_fail(reader->error, "%s: header: recorded on a machine of another byte order",
                         path);
    if (header->version < BFC_TRACE_OLDEST_VERSION || header->version > BFC_TRACE_VERSION)
        return plan_fail(reader->error,
                         "%s: header: version %u, only versions %d to %d are accepted", path,
                         header->version, BFC_TRACE_OLDEST_VERSION, BFC_TRACE_VERSION);
    if (header->record_bytes != sizeof(struct bfc_trace_record))
        return plan_fail(reader->error, "%s: header: records of %u bytes, only %zu are accepted",
                         path, header->record_bytes, sizeof(struct bfc_trace_record));
    header->device[sizeof header->device - 1] = '\0';
    reader->at += sizeof *header;
    return true;
}

static bool fail_block(struct reader *reader, const char *why) {
    return plan_fail(reader->error, "%s: block %u: %s", reader->trace->path, reader->block, why);
}

static bool reserve_records(struct reader *reader, size_t more) {
    struct trace *trace = reader->trace;
    if (trace->count + more <= reader->room)
        return true;
    const size_t room = (trace->count + more) * 2;
    struct bfc_trace_record *records = realloc(trace->records, room * sizeof *records);
    if (!records)
        return plan_fail_memory(reader->error);
    trace->records = records;
    reader->room = room;
    return true;
}

static bool unpack_block(struct reader *reader, const struct bfc_trace_block *block, void *to,
                         size_t bytes) {
    if (block->codec == BFC_TRACE_PLAIN) {
        if (block->bytes != bytes)
            return fail_block(reader, "its size does not match its number of records");
        memcpy(to, reader->at, bytes);
        return true;
    }
    if (block->codec != BFC_TRACE_ZSTD)
        return fail_block(reader, "its codec is not known; accepted are 0 (plain) and 1 (zstd)");
    const size_t got = ZSTD_decompress(to, bytes, reader->at, block->bytes);
    if (ZSTD_isError(got) || got != bytes)
        return fail_block(reader, "it cannot be decompressed to its number of records");
    return true;
}

static bool check_records(struct reader *reader, const struct bfc_trace_block *block) {
    const struct trace *trace = reader->trace;
    for (size_t i = trace->count; i < trace->count + block->records; i++) {
        const struct bfc_trace_record *record = &trace->records[i];
        if (record->op >= BFC_TRACE_OPS)
            return plan_fail(reader->error, "%s: block %u: record %zu: its op %u is not known",
                             trace->path, reader->block, i, record->op);
        if (record->memory >= BFC_TRACE_MEMORIES)
            return plan_fail(reader->error, "%s: block %u: record %zu: its memory %u is not known",
                             trace->path, reader->block, i, record->memory);
        if (record->op == BFC_TRACE_STACK && record->stream >= stacks_sites(&trace->stacks))
            return plan_fail(
                reader->error,
                "%s: block %u: record %zu: its call stack %u is not in the file before",
                trace->path, reader->block, i, record->stream);
        if (i > 0 && record->sequence <= trace->records[i - 1].sequence)
            return plan_fail(reader->error,
                             "%s: block %u: record %zu: sequence %" PRIu64 " does not increase",
                             trace->path, reader->block, i, record->sequence);
    }
    return true;
}

/* Whether the rest of the file is an incomplete block, because the writing of the trace was cut
 * short: the file ends within the block, or the rest is all zeros. */
static bool is_tail(const struct reader *reader, struct bfc_trace_block *block) {
    const size_t left = (size_t)(reader->end - reader->at);
    if (left < sizeof *block)
        return true;
    memcpy(block, reader->at, sizeof *block);
    if (block->magic == BFC_TRACE_BLOCK_MAGIC)
        return block->bytes > left - sizeof *block;
    for (size_t i = 0; i < left; i++)
        if (reader->at[i] != 0)
            return false;
    return true;
}

static bool read_records(struct reader *reader, const struct bfc_trace_block *block) {
    struct trace *trace = reader->trace;
    if (block->records == 0 || block->records > BFC_TRACE_MOST_RECORDS)
        return fail_block(reader, "its number of records is not from 1 to 65536");
    if (!reserve_records(reader, block->records) ||
        !unpack_block(reader, block, trace->records + trace->count,
                      block->records * sizeof *trace->records) ||
        !check_records(reader, block))
        return false;
    if (trace->records[trace->count].sequence != block->first)
        return fail_block(reader, "its first record is not the one that it announces");
    trace->count += block->records;
    return true;
}

/* Returns the content of a block that does not hold records, with a zero byte behind it; NULL: the
 * block could not be read, and reader->error says why. */
static char *read_payload(struct reader *reader, const struct bfc_trace_block *block) {
    if (block->records == 0 || block->records > BFC_TRACE_MOST_STACKS) {
        fail_block(reader, "its size is not from 1 to 1048576 bytes");
        return NULL;
    }
    char *payload = calloc(1, (size_t)block->records + 1);
    if (!payload)
        plan_fail_memory(reader->error);
    if (payload && unpack_block(reader, block, payload, block->records))
        return payload;
    free(payload);
    return NULL;
}

static bool read_settings(struct reader *reader, const struct bfc_trace_block *block) {
    free(reader->trace->settings);
    reader->trace->settings = read_payload(reader, block);
    return reader->trace->settings;
}

static bool read_stacks(struct reader *reader, const struct bfc_trace_block *block) {
    char *payload = read_payload(reader, block);
    bool good = payload;
    if (good && !stacks_append(&reader->trace->stacks, payload, block->records))
        good = fail_block(reader, "its tables do not have the sizes that it tells");
    free(payload);
    return good;
}

static bool read_block(struct reader *reader, const struct bfc_trace_block *block) {
    if (block->magic != BFC_TRACE_BLOCK_MAGIC)
        return fail_block(reader, "it does not begin as a block does: the file is damaged");
    reader->at += sizeof *block;
    if (bfc_trace_sum(reader->at, block->bytes) != block->sum)
        return fail_block(reader, "its checksum is wrong: the file is damaged");
    bool good = block->kind == BFC_TRACE_RECORDS    ? read_records(reader, block)
                : block->kind == BFC_TRACE_STACKS   ? read_stacks(reader, block)
                : block->kind == BFC_TRACE_SETTINGS ? read_settings(reader, block)
                                                    : true;
    reader->at += block->bytes;
    watch_add(sizeof *block + block->bytes);
    return good;
}

bool trace_parse(struct trace *trace, const struct file_text *text, const char *path,
                 struct plan_error *error) {
    struct trace result = {.path = path};
    struct reader reader = {.trace = &result,
                            .error = error,
                            .at = (const unsigned char *)text->bytes,
                            .end = (const unsigned char *)text->bytes + text->size};
    bool good = trace_looks_like(text) || plan_fail(error, "%s: header: not a trace", path);
    good = good && read_header(&reader);
    while (good && reader.at < reader.end) {
        struct bfc_trace_block block;
        if (is_tail(&reader, &block)) {
            result.cut_off = true;
            break;
        }
        good = read_block(&reader, &block);
        reader.block++;
    }
    if (!good) {
        trace_free(&result);
        return false;
    }
    *trace = result;
    return true;
}

static bool write_block(FILE *stream, struct bfc_trace_block block, const void *content,
                        size_t bytes) {
    const size_t room = ZSTD_compressBound(bytes);
    void *packed = malloc(room);
    size_t size = bytes;
    bool good = packed;
    if (good && block.codec == BFC_TRACE_ZSTD) {
        size = ZSTD_compress(packed, room, content, bytes, 1);
        good = !ZSTD_isError(size);
    }
    const void *payload = block.codec == BFC_TRACE_ZSTD ? packed : content;
    if (good) {
        block.magic = BFC_TRACE_BLOCK_MAGIC;
        block.bytes = (uint32_t)size;
        block.sum = bfc_trace_sum(payload, size);
        good = fwrite(&block, sizeof block, 1, stream) == 1 &&
               fwrite(payload, 1, size, stream) == size;
    }
    free(packed);
    return good;
}

static bool write_records(FILE *stream, const struct bfc_trace_record *records, uint32_t count,
                          enum bfc_trace_codec codec) {
    const struct bfc_trace_block block = {.kind = BFC_TRACE_RECORDS,
                                          .codec = (uint16_t)codec,
                                          .records = count,
                                          .first = records[0].sequence};
    return write_block(stream, block, records, count * sizeof *records);
}

static bool write_stacks(FILE *stream, const struct stacks *stacks, enum bfc_trace_codec codec) {
    if (stacks_sites(stacks) == 0)
        return true;
    size_t size;
    char *payload = stacks_payload(stacks, &size);
    const struct bfc_trace_block block = {
        .kind = BFC_TRACE_STACKS, .codec = (uint16_t)codec, .records = (uint32_t)size};
    const bool good = payload && write_block(stream, block, payload, size);
    free(payload);
    return good;
}

static bool write_settings(FILE *stream, const char *settings, enum bfc_trace_codec codec) {
    const size_t size = settings ? strlen(settings) : 0;
    const struct bfc_trace_block block = {
        .kind = BFC_TRACE_SETTINGS, .codec = (uint16_t)codec, .records = (uint32_t)size};
    return size == 0 || write_block(stream, block, settings, size);
}

bool trace_write(const struct trace *trace, FILE *stream, enum bfc_trace_codec codec) {
    struct bfc_trace_header header = trace->header;
    memcpy(header.magic, BFC_TRACE_MAGIC, sizeof header.magic);
    header.version = BFC_TRACE_VERSION;
    header.byte_order = BFC_TRACE_BYTE_ORDER;
    header.record_bytes = sizeof(struct bfc_trace_record);
    bool good = fwrite(&header, sizeof header, 1, stream) == 1 &&
                write_settings(stream, trace->settings, codec) &&
                write_stacks(stream, &trace->stacks, codec);
    for (size_t i = 0; good && i < trace->count; i += BLOCK_RECORDS) {
        const size_t left = trace->count - i;
        good = write_records(stream, trace->records + i,
                             (uint32_t)(left < BLOCK_RECORDS ? left : BLOCK_RECORDS), codec);
    }
    return good;
}
