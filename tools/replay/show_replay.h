/* Shows the result of a replay as text, JSON, a CSV of events, a picture, a web page, or in a file
 * for other viewers. */
#ifndef BFC_REPLAY_SHOW_H
#define BFC_REPLAY_SHOW_H

#include "tools/replay/replay.h"

struct shown {
    struct settings settings;
    struct result result;
};

/* Prints the result as one line of JSON. */
void show_json(const struct shown *shown, FILE *stream);

/* Prints the result as a block of text. */
void show_text(const struct shown *shown, FILE *stream);

/* Prints a table of several results, and below it how to set the best: of those without failed
 * allocations the one that reserved least; of equal ones, the one with the fewest device calls.
 * `start` are the settings that were recorded or given, from which all the others differ only in
 * policy and growth. */
void show_table(const struct shown *shown, unsigned count, const struct settings *start,
                FILE *stream);

/* Whether a variable (BFC_...) has an effect on a replay. A replay has only pools, one for each
 * device, so variables about processes, recording or statistics have none. */
bool setting_matters(const char *name);

/* Writes, as NAME=value with blanks between, the settings that have an effect on a replay and are
 * not the defaults. */
void put_changed(const struct bfc_options *options, char *text, size_t size);

/* Writes a CSV with a line for each region and block that was taken, given back or refused, with
 * the columns op,id,region,address,bytes. */
bool show_events(const struct input *input, const struct log *log, const char *path,
                 struct plan_error *error);

/* Draws regions and blocks as SVG, over time (counted in calls) and address. */
bool show_plot(const struct input *input, const struct log *log, const char *path,
               struct plan_error *error);

struct replayed {
    const char *trace;
    const struct input *input;
    const struct settings *settings;
    const struct log *log;
};

/* Writes a web page about one or two replays: each block at its address and in its time, the peak,
 * and which allocations failed and why. The path "-" is standard output. */
bool show_report(const struct replayed *replayed, unsigned count, const char *path,
                 struct plan_error *error);

/*
 * Writes a memory snapshot in PyTorch's format, a pickle that its viewers read. `trace` is the name
 * of the replayed file.
 */
bool show_snapshot(const struct input *input, const struct settings *settings,
                   const struct log *log, const char *trace, const char *path,
                   struct plan_error *error);

/* Writes trace events in Chrome's format, for Perfetto: failed allocations, and requested and
 * reserved bytes as counters. */
bool show_chrome_trace(const struct input *input, const struct log *log, const char *path,
                       struct plan_error *error);

#endif
