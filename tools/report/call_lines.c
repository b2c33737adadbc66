#include "tools/report/call_lines.h"

#include <inttypes.h>

enum { ON_A_LINE = 4096 };

void report_put_call(struct report_calls *calls, const struct report_call *call) {
    if (calls->on_line == ON_A_LINE)
        report_end_calls(calls, 0);
    fputs(calls->on_line++ ? "," : "{\"type\":\"calls\",\"calls\":[", calls->file);
    fprintf(calls->file, "[\"%c\",%" PRIu64 ",%u,%" PRIu64 ",%" PRIu64, call->kind, call->at,
            call->pool, call->address, call->bytes);
    if (call->name || call->size)
        fprintf(calls->file, ",%" PRIu64 ",%" PRIu64, call->name, call->size);
    if (call->site)
        fprintf(calls->file, ",%u,%.6g", call->site, call->weight);
    putc(']', calls->file);
}

void report_end_calls(struct report_calls *calls, uint64_t lost) {
    if (calls->on_line)
        fprintf(calls->file, "],\"lost\":%" PRIu64 "}\n", lost);
    calls->on_line = 0;
}
