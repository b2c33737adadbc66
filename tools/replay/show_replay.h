/* What a replay came to: table, JSON, events file, picture, report. */
#ifndef BFC_REPLAY_SHOW_H
#define BFC_REPLAY_SHOW_H

#include "tools/replay/replay.h"

struct shown {
    struct settings settings;
    struct result result;
};

/* One line of JSON. */
void show_json(const struct shown *shown, FILE *stream);

/* One block of text for one result. */
void show_text(const struct shown *shown, FILE *stream);

/* A table of several, the best named below it. */
void show_table(const struct shown *shown, unsigned count, FILE *stream);

/* Fewest failures, then least reserved, then fewest device calls, then the first. */
unsigned show_best(const struct shown *shown, unsigned count);

/* op,id,region,address,bytes */
bool show_events(const struct input *input, const struct log *log, const char *path,
                 struct plan_error *error);

/* Regions and blocks over time (calls) and address, as SVG. */
bool show_plot(const struct input *input, const struct log *log, const char *path,
               struct plan_error *error);

struct replay_paths {
    const char *trace; /* what was replayed */
    const char *report, *snapshot, *chrome_trace;
};

/* One web page: every block at its address and in its time, the peak, what failed and why; of two,
 * side by side. `path`: "-" is standard output. */
struct replayed {
    const char *trace;
    const struct input *input;
    const struct log *log;
};
bool show_report(const struct replayed *replayed, unsigned count, const struct settings *settings,
                 const char *path, struct plan_error *error);

/* PyTorch's memory snapshot: a pickle that its viewers read. */
bool show_snapshot(const struct input *input, const struct settings *settings,
                   const struct log *log, const struct replay_paths *paths,
                   struct plan_error *error);

/* Chrome's trace events, for Perfetto: live and reserved bytes as counters, failures. */
bool show_chrome_trace(const struct input *input, const struct log *log,
                       const struct replay_paths *paths, struct plan_error *error);

#endif
