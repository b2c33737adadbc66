/* Shows the results of a replay: as text, JSON, events file, picture, report, and for other
 * viewers. */
#ifndef BFC_REPLAY_SHOW_H
#define BFC_REPLAY_SHOW_H

#include "tools/replay/replay.h"

struct shown {
    struct settings settings;
    struct result result;
};

/* Prints one line of JSON. */
void show_json(const struct shown *shown, FILE *stream);

/* Prints one result as a block of text. */
void show_text(const struct shown *shown, FILE *stream);

/* Prints a table of several results, and below it what to type for the best one: of those in which
 * nothing fails the one with least reserved, then fewest device calls. `start` are the settings
 * that all others differ from. */
void show_table(const struct shown *shown, unsigned count, const struct settings *start,
                FILE *stream);

/* Whether a variable changes anything in a replay, which has one pool for each device and no
 * job. */
bool setting_matters(const char *name);

/* Writes NAME=value, joined by blanks, of the settings that matter and are not their defaults. */
void put_changed(const struct bfc_options *options, char *text, size_t size);

/* Writes a CSV with the columns op,id,region,address,bytes. */
bool show_events(const struct input *input, const struct log *log, const char *path,
                 struct plan_error *error);

/* Draws regions and blocks over time (calls) and address, as SVG. */
bool show_plot(const struct input *input, const struct log *log, const char *path,
               struct plan_error *error);

/* Writes one web page about one or two replays: every block at its address and in its time, the
 * peak, what failed and why. `path` "-" is standard output. */
struct replayed {
    const char *trace;
    const struct input *input;
    const struct settings *settings;
    const struct log *log;
};
bool show_report(const struct replayed *replayed, unsigned count, const char *path,
                 struct plan_error *error);

/*
 * Writes PyTorch's memory snapshot, a pickle that its viewers read. `trace` is the replayed file.
 */
bool show_snapshot(const struct input *input, const struct settings *settings,
                   const struct log *log, const char *trace, const char *path,
                   struct plan_error *error);

/* Writes Chrome's trace events, for Perfetto: failures, and live and reserved bytes as counters. */
bool show_chrome_trace(const struct input *input, const struct log *log, const char *path,
                       struct plan_error *error);

#endif
