/* bfcplan period: finds the part of a sequence of allocations and frees that repeats, such as an
 * iteration of a loop. */
#include <stdio.h>

#include "base/bytes.h"
#include "tools/plan/cli/arguments.h"
#include "tools/plan/cli/command.h"
#include "tools/plan/cli/progress.h"
#include "tools/plan/cli/source.h"

static void print_json(const struct events *events, const struct period *p) {
    printf("{\"allocations\":%u,\"events\":%u,\"prefix\":%u,\"period\":%u,\"repetitions\":%u,"
           "\"prefix_events\":%u,\"period_events\":%u,\"jitter\":%s,\"growth\":%.4f}\n",
           events->allocations_count, events->count, p->length > 0 ? p->prefix : 0, p->length,
           p->repetitions, p->prefix_events, p->length_events, p->jitter ? "true" : "false",
           p->growth);
}

static void print_text(const struct events *events, const struct period *p) {
    if (p->length == 0) {
        printf("no period: nothing repeats three times (%u allocation%s)\n",
               events->allocations_count, bfc_plural(events->allocations_count));
        return;
    }
    printf("prefix       %u allocation%s (%u event%s)\n", p->prefix, bfc_plural(p->prefix),
           p->prefix_events, bfc_plural(p->prefix_events));
    printf("period       %u allocation%s (%u events)\n", p->length, bfc_plural(p->length),
           p->length_events);
    printf("repetitions  %u\n", p->repetitions);
    if (p->jitter)
        printf("sizes jitter: planned for the largest, which needs %.1f %% more than an average "
               "repetition\n",
               (p->growth - 1) * 100);
}

static const enum stage stages[] = {STAGE_READ, STAGE_PERIOD};
static const struct progress_way way = {stages, sizeof stages / sizeof *stages, false};

static bool find_loop(struct events *events, struct period *period, const char *file,
                      struct source_about *about, struct plan_error *error) {
    if (!source_read_events(events, file, about, error))
        return false;
    progress_stage(STAGE_PERIOD, period_steps(events));
    if (period_find(period, events, error))
        return true;
    events_free(events);
    return false;
}

int command_period(int argc, char **argv) {
    const char *file;
    bool json = false;
    struct events events;
    struct source_about about;
    struct plan_error error;
    const struct option options[] = {{"json", 0, OPTION_FLAG, &json, 0, 0}};
    if (!arguments_parse(argc, argv, options, 1, &file, 1, "one TRACE"))
        return EXIT_USAGE;
    struct period period;
    progress_start(&way);
    const bool good = find_loop(&events, &period, file, &about, &error);
    progress_stop();
    if (!good)
        return command_fail(&error);
    if (about.cut_off)
        fprintf(stderr, "bfcplan: %s: the tail is missing\n", file);
    if (json)
        print_json(&events, &period);
    else
        print_text(&events, &period);
    events_free(&events);
    return EXIT_GOOD;
}
