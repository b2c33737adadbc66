/*
 * Trace files (layout/trace.h): read whole with every number checked, and written block by block by
 * the generator and tests. A recording job has its own writer of the same layout.
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
    struct stacks stacks; /* empty if no call stacks were recorded */
    char *settings;       /* lines NAME=value of the recorded job; NULL: not recorded */
    bool cut_off;         /* the trace's tail is missing */
};

bool trace_looks_like(const struct file_text *text);

/* Parses `text`, which is not changed, and counts its bytes as steps (watch.h). Free with
 * trace_free. */
bool trace_parse(struct trace *trace, const struct file_text *text, const char *path,
                 struct plan_error *error);
void trace_free(struct trace *trace);

/* Writes header and records in blocks; fills in magic, version, byte order and record size. */
bool trace_write(const struct trace *trace, FILE *stream, enum bfc_trace_codec codec);

#endif
