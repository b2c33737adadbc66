/*
 * Reads and writes traces: files with a job's allocations and frees (layout/trace.h). All that a
 * file says is checked. trace_write is for programs that generate traces and for tests; a job that
 * records a trace has a writer of its own.
 */
#ifndef BFC_PLAN_TRACE_H
#define BFC_PLAN_TRACE_H

#include "layout/trace.h"
#include "tools/plan/common/whole_file.h"
#include "tools/plan/trace/stacks.h"

struct trace {
    const char *path;
    struct bfc_trace_header header;
    struct bfc_trace_record *records;
    size_t count;
    struct stacks stacks; /* call stacks of the allocations; empty if none were recorded */
    /* the settings of the recorded job, lines NAME=value; NULL: they were not recorded */
    char *settings;
    bool cut_off; /* whether the end of the file is missing */
};

bool trace_looks_like(const struct file_text *text);

/* Reads a trace from `text`, which is not changed, and counts its bytes as steps of the progress
 * (watch.h). `path` is for error messages. trace_free frees the trace. */
bool trace_parse(struct trace *trace, const struct file_text *text, const char *path,
                 struct plan_error *error);
void trace_free(struct trace *trace);

/* Writes a trace file. Fills in the magic number, version, byte order and record size in the
 * header. */
bool trace_write(const struct trace *trace, FILE *stream, enum bfc_trace_codec codec);

#endif
