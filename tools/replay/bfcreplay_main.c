/* bfcreplay: makes the allocations and frees of a recorded trace again, with the library's own pool
 * over a simulated device, so that no GPU is needed. See docs/tuning.md. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "planner/common/number.h"
#include "tools/plan/common/whole_file.h"
#include "tools/replay/show_replay.h"

static const char help[] =
    "usage: bfcreplay TRACE [OPTION…]\n"
    "\n"
    "Replays a trace that BFC_RECORD made, from the recorded settings on, or a CSV of lifetimes "
    "(id,lower,upper,size; half-open;\n"
    "at equal times frees come first), through the real pool. No GPU is needed. '-' is standard\n"
    "input.\n"
    "\n"
    "  --policy bfc|tf|pytorch                   default bfc\n"
    "  --growth double|fixed|exact|preallocate   default double\n"
    "  --free sync|lazy|ordered                  default sync\n"
    "  --set BFC_NAME=VALUE                      any setting, as in the environment; repeatable; a "
    "line\n"
    "                   says so of one that a replay does not depend on\n"
    "  --compare        every policy with every growth, in one table, and the best; preallocate\n"
    "                   only if it was recorded or given\n"
    "  --json           one line of JSON for each policy and growth\n"
    "  --events OUT.csv every region and block: op,id,region,address,bytes; op is reserve, "
    "release\n"
    "                   (a region), allocate, free, fail (a block; bytes as asked for)\n"
    "  --plot OUT.svg   regions and blocks over time and address\n"
    "  --report OUT.html  one web page, offline: every block at its address and in its time, the "
    "peak\n"
    "                   and who held it, each out of memory with why and the calls before it; '-' "
    "is\n"
    "                   standard output, in place of the figures\n"
    "  --beside TRACE   another one on the same page; what was recorded of it and the options "
    "here\n"
    "                   are its settings\n"
    "  --snapshot OUT.pickle\n"
    "                   PyTorch's memory snapshot, which its viewers read\n"
    "  --chrome-trace OUT.json\n"
    "                   live and reserved bytes as counters, for Perfetto and chrome://tracing\n"
    "  --memory SIZE    what the device has; K, M, G, T are binary (default: no end, and "
    "fractions\n"
    "                   are of 80G)\n"
    "  --lag N          lazy, ordered: work on freed memory is complete N calls later (default "
    "100)\n"
    "  --device-us N    what a call of the device is taken to cost (default 100; calls for\n"
    "                   pages have costs of their own)\n"
    "  --backing malloc|pages|auto\n"
    "                   whole regions, or pages behind addresses (default malloc; auto: pages if "
    "the\n"
    "                   trace has one device); figures alone: without a page, picture or events\n"
    "  --slack N        pages: reserved beyond the most ever requested, as a part of it, before\n"
    "                   free pages are moved (default 0.03)\n"
    "  --page SIZE      pages: the largest; smaller ones move more easily and cost more calls\n"
    "                   (default as in a job: 1 GiB, or with BFC_PAGE=fit a 512th of the\n"
    "                   device's memory)\n"
    "  --repeat N       passes through the trace, up to 64; figures are of all (default 1), but\n"
    "                   the time of a pair is of the last\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 success, also when allocations failed (the figures say how many); 1 bad "
    "input;\n"
    "2 wrong usage.\n";

enum { GOOD, FAILED, USAGE, POLICIES = 3, GROWTHS = 4 };

/* A setting from the command line, which replaces the value that the trace has recorded. */
struct given {
    const struct bfc_option *option;
    const char *value;
};

struct arguments {
    const char *trace, *events, *plot, *report, *beside, *snapshot, *chrome_trace;
    /* The name of an option on the command line that has an effect only with --backing=pages; NULL:
     * there is none. */
    const char *of_pages;
    bool compare, json, policy_given, growth_given;
    struct settings settings;
    /* the settings from the command line; an array with room for as many as there are arguments */
    struct given *given;
    unsigned given_count;
};

static int report_misuse(const char *format, ...) PRINTF_LIKE(1, 2);

static int report_misuse(const char *format, ...) {
    va_list list;
    fputs("bfcreplay: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputs(" (see bfcreplay --help)\n", stderr);
    return USAGE;
}

static int set_named(struct arguments *a, const char *flag, const char *name, const char *value) {
    const struct bfc_option *option = bfc_option_find(name);
    char accepted[256];
    if (!option)
        return report_misuse("%s: no variable %s%s%s%s", flag, name,
                             bfc_option_nearest(name) ? "; did you mean " : "",
                             bfc_option_nearest(name) ? bfc_option_nearest(name) : "",
                             bfc_option_nearest(name) ? "?" : "");
    a->policy_given |= strcmp(option->name, "BFC_POLICY") == 0;
    a->growth_given |= strcmp(option->name, "BFC_GROWTH") == 0;
    a->given[a->given_count++] = (struct given){option, value};
    if (bfc_option_set(&a->settings.options, option, value))
        return GOOD;
    bfc_option_describe(option, accepted, sizeof accepted);
    return report_misuse("%s: %s=%s is not accepted: expected %s", flag, name, value, accepted);
}

static int take_set(struct arguments *a, const char *value) {
    char name[64];
    size_t length = strcspn(value, "=");
    if (value[length] != '=' || length >= sizeof name)
        return report_misuse("--set '%s': expected BFC_NAME=VALUE", value);
    memcpy(name, value, length);
    name[length] = '\0';
    int status = set_named(a, "--set", name, value + length + 1);
    if (status == GOOD && !setting_matters(bfc_option_find(name)->name))
        fprintf(stderr, "bfcreplay: --set %s: a replay does not depend on it\n", name);
    return status;
}

static int take_memory(struct arguments *a, const char *value) {
    if (bfc_bytes_parse(value, PLAN_MOST_BYTES, &a->settings.memory) && a->settings.memory > 0)
        return GOOD;
    return report_misuse("--memory '%s' is not a size above 0 in bytes or with K, M, G, T", value);
}

static int take_lag(struct arguments *a, const char *value) {
    uint64_t lag;
    if (!plan_parse_u64(value, strlen(value), 1000000000, &lag))
        return report_misuse("--lag '%s' is not a whole number from 0 to 1000000000", value);
    a->settings.lag = (uint32_t)lag;
    return GOOD;
}

static int take_device_us(struct arguments *a, const char *value) {
    if (plan_parse_seconds(value, &a->settings.device_us))
        return GOOD;
    return report_misuse("--device-us '%s' is not a number from 0 to 1000000000", value);
}

static int take_slack(struct arguments *a, const char *value) {
    a->of_pages = "slack";
    return set_named(a, "--slack", "BFC_SLACK", value);
}

static int take_page(struct arguments *a, const char *value) {
    a->of_pages = "page";
    if (bfc_bytes_parse(value, PLAN_MOST_BYTES, &a->settings.page_most) &&
        a->settings.page_most > 0)
        return GOOD;
    return report_misuse("--page '%s' is not a size above 0 in bytes or with K, M, G, T", value);
}

static int take_repeat(struct arguments *a, const char *value) {
    uint64_t repeats;
    if (!plan_parse_u64(value, strlen(value), MOST_REPEATS, &repeats) || !repeats)
        return report_misuse("--repeat '%s' is not a whole number from 1 to %d", value,
                             MOST_REPEATS);
    a->settings.repeats = (uint32_t)repeats;
    return GOOD;
}

static const struct valued {
    const char *name;
    const char
        *variable; /* the environment variable that has the same values; NULL: there is none */
    int (*take)(struct arguments *a, const char *value);
    /* Only for an option whose value is a path (`variable` and `take` are NULL): offset in struct
     * arguments of the field that stores the path. */
    size_t path;
} valued[] = {{"--policy", .variable = "BFC_POLICY"},
              {"--growth", .variable = "BFC_GROWTH"},
              {"--free", .variable = "BFC_FREE"},
              {"--backing", .variable = "BFC_BACKING"},
              {"--slack", .take = take_slack},
              {"--set", .take = take_set},
              {"--memory", .take = take_memory},
              {"--lag", .take = take_lag},
              {"--device-us", .take = take_device_us},
              {"--page", .take = take_page},
              {"--repeat", .take = take_repeat},
              {"--events", .path = offsetof(struct arguments, events)},
              {"--plot", .path = offsetof(struct arguments, plot)},
              {"--report", .path = offsetof(struct arguments, report)},
              {"--beside", .path = offsetof(struct arguments, beside)},
              {"--snapshot", .path = offsetof(struct arguments, snapshot)},
              {"--chrome-trace", .path = offsetof(struct arguments, chrome_trace)}};

static const struct valued *find_valued(const char *argument, const char **value) {
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++) {
        size_t length = strlen(valued[i].name);
        if (strncmp(argument, valued[i].name, length) != 0 ||
            (argument[length] && argument[length] != '='))
            continue;
        *value = argument[length] ? argument + length + 1 : NULL;
        return &valued[i];
    }
    return NULL;
}

static int take_operand(struct arguments *a, const char *argument) {
    if (a->trace)
        return report_misuse("'%s' is one too many: one TRACE is taken", argument);
    a->trace = argument;
    return GOOD;
}

static int take_argument(struct arguments *a, char **argv, int *i) {
    const char *argument = argv[*i], *value;
    const struct valued *option = find_valued(argument, &value);
    if (strcmp(argument, "--compare") == 0 || strcmp(argument, "--json") == 0) {
        *(argument[2] == 'c' ? &a->compare : &a->json) = true;
        return GOOD;
    }
    if (argument[0] != '-' || argument[1] == '\0')
        return take_operand(a, argument);
    if (!option)
        return report_misuse("unknown option '%s'", argument);
    if (!value && !argv[*i + 1])
        return report_misuse("%s needs a value", option->name);
    if (!value)
        value = argv[++*i];
    if (option->variable)
        return set_named(a, option->name, option->variable, value);
    if (option->take)
        return option->take(a, value);
    memcpy((char *)a + option->path, &value, sizeof value);
    return GOOD;
}

/* Returns the name of an option on the command line whose output is made from a log of all regions
 * and blocks; NULL: there is none. */
static const char *wants_log(const struct arguments *a) {
    return a->events         ? "events"
           : a->plot         ? "plot"
           : a->report       ? "report"
           : a->snapshot     ? "snapshot"
           : a->chrome_trace ? "chrome-trace"
                             : NULL;
}

/* Checks what can be checked of the command line before the trace is read. Returns GOOD, or another
 * exit status after a message. */
static int check_arguments(const struct arguments *a) {
    if (!a->trace)
        return report_misuse("no TRACE");
    const char *wanted = wants_log(a);
    if (a->beside && !a->report)
        return report_misuse("--beside is for a page: --report OUT.html is missing");
    if (a->compare && wanted)
        return report_misuse("--%s is of one policy and growth: not with --compare", wanted);
    bool pages = a->settings.options.backing != BFC_BACKING_MALLOC;
    if ((pages || a->settings.repeats > 1) && wanted)
        return report_misuse(
            "--%s is of one pass over regions: not with --backing=pages or --repeat", wanted);
    if (a->of_pages && !pages)
        return report_misuse("--%s is for pages: not without --backing=pages", a->of_pages);
    return GOOD;
}

static int report_failure(const struct plan_error *error) {
    fprintf(stderr, "bfcreplay: %s\n", error->text);
    return FAILED;
}

/* Whether --compare tries this allocation policy with this way to grow the pool. If the command
 * line has a policy or a way to grow, no other is tried. Growing by preallocation takes most of the
 * device at once, so it is tried only if it was recorded or is on the command line. */
static bool is_compared(const struct arguments *a, const struct bfc_options *options, int policy,
                        int growth) {
    if (a->growth_given ? growth != options->growth
                        : growth == BFC_GROWTH_PREALLOCATE && options->growth != growth)
        return false;
    return !a->policy_given || policy == options->policy;
}

static int compare_policies(const struct arguments *a, const struct input *input,
                            const struct settings *start) {
    static struct shown shown[POLICIES * GROWTHS];
    struct plan_error error;
    unsigned count = 0;
    for (int i = 0; i < POLICIES * GROWTHS; i++) {
        struct settings settings = *start;
        int policy = i / GROWTHS, growth = i % GROWTHS;
        if (!is_compared(a, &start->options, policy, growth))
            continue;
        settings.options.policy = policy;
        settings.options.growth = growth;
        shown[count].settings = settings;
        if (!replay(input, &settings, NULL, &shown[count].result, &error))
            return report_failure(&error);
        count++;
    }
    for (unsigned i = 0; a->json && i < count; i++)
        show_json(&shown[i], stdout);
    if (!a->json)
        show_table(shown, count, start, stdout);
    return GOOD;
}

/* Whether the replay uses a setting as it was recorded. BFC_BACKING is not used if the output is
 * made from a log of the replay, because such a log can show whole regions, but no pages. BFC_LIMIT
 * is not used if the recorded job had host memory, which its limit did not count: in the replay
 * that memory is device memory, and the limit would count it. BFC_MODE is never used, because the
 * settings that it chose were recorded, too. */
static bool is_taken_over(const struct arguments *a, const struct input *input,
                          const struct bfc_option *option) {
    return setting_matters(option->name) && strcmp(option->name, "BFC_MODE") != 0 &&
           !(input_spilled(input).blocks && strcmp(option->name, "BFC_LIMIT") == 0) &&
           !(wants_log(a) && strcmp(option->name, "BFC_BACKING") == 0);
}

/* Sets the options that were recorded in the trace as lines NAME=value. This cuts the text
 * input->settings into pieces. Settings that this library does not know, because a newer one
 * recorded them, are ignored. */
static void take_recorded(const struct arguments *a, const struct input *input,
                          struct bfc_options *options) {
    char *rest, *lines = input->settings;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = '\0';
        const struct bfc_option *option = bfc_option_find(line);
        if (option && is_taken_over(a, input, option))
            bfc_option_set(options, option, value);
    }
    /* The recorded settings do not count as given by the user, so that a BFC_MODE on the command
     * line can still choose their values. */
    options->given = 0;
}

static void tell_start(const struct arguments *a, const struct settings *settings,
                       const struct input *input, const char *trace) {
    char text[1024] = "", size[32] = "";
    put_changed(&settings->options, text, sizeof text);
    if (settings->memory != UINT64_MAX)
        snprintf(size, sizeof size, ", on %.1f GiB", (double)settings->memory / (1 << 30));
    if (input->settings)
        fprintf(stderr, "bfcreplay: %s: starts from the recorded settings%s: %s%s\n", trace,
                a->given_count ? " and those given" : "", *text ? text : "the defaults", size);
    else if (input->from_trace)
        fprintf(stderr, "bfcreplay: %s: its settings were not recorded; replayed with %s%s\n",
                trace, *text ? text : "the defaults", size);
}

/* Returns the settings with which the replay begins: those that were recorded, except those that
 * the command line gives. */
static struct settings start_as_recorded(const struct arguments *a, const struct input *input,
                                         const char *trace) {
    struct settings settings = a->settings;
    if (settings.memory == UINT64_MAX && input->device_bytes && !input_spilled(input).blocks)
        settings.memory = input->device_bytes;
    if (input->settings) {
        bfc_options_init(&settings.options);
        take_recorded(a, input, &settings.options);
        for (unsigned i = 0; i < a->given_count; i++)
            bfc_option_set(&settings.options, a->given[i].option, a->given[i].value);
    }
    tell_start(a, &settings, input, trace);
    return settings;
}

/* Writes the page of --report. If --beside names a second trace, replays that first, and both are
 * on the page. */
static bool write_report(const struct arguments *a, const struct replayed *first,
                         struct plan_error *error) {
    struct replayed replayed[2] = {*first};
    struct input other;
    struct log log = {0};
    struct result result;
    if (!a->beside)
        return show_report(replayed, 1, a->report, error);
    if (!input_read(&other, a->beside, error))
        return false;
    struct settings settings = start_as_recorded(a, &other, a->beside);
    replayed[1] = (struct replayed){a->beside, &other, &settings, &log};
    bool good = replay(&other, &settings, &log, &result, error) &&
                show_report(replayed, 2, a->report, error);
    log_free(&log);
    input_free(&other);
    return good;
}

static int run_one(const struct arguments *a, const struct input *input,
                   const struct settings *settings) {
    struct shown shown = {.settings = *settings};
    struct log log = {0};
    struct replayed replayed = {a->trace, input, settings, &log};
    struct plan_error error;
    bool good =
        replay(input, settings, wants_log(a) ? &log : NULL, &shown.result, &error) &&
        (!a->events || show_events(input, &log, a->events, &error)) &&
        (!a->plot || show_plot(input, &log, a->plot, &error)) &&
        (!a->report || write_report(a, &replayed, &error)) &&
        (!a->snapshot || show_snapshot(input, settings, &log, a->trace, a->snapshot, &error)) &&
        (!a->chrome_trace || show_chrome_trace(input, &log, a->chrome_trace, &error));
    log_free(&log);
    if (!good)
        return report_failure(&error);
    if (!a->report || strcmp(a->report, "-") != 0)
        (a->json ? show_json : show_text)(&shown, stdout);
    return GOOD;
}

static int replay_all(const struct arguments *a) {
    struct input input;
    struct plan_error error;
    if (!input_read(&input, a->trace, &error))
        return report_failure(&error);
    if (input.cut_off)
        fprintf(stderr, "bfcreplay: %s: the tail is missing; what there is is replayed\n",
                a->trace);
    if (input.events.unknown_frees)
        fprintf(stderr, "bfcreplay: %s: left out: %u free%s of unknown allocations\n", a->trace,
                input.events.unknown_frees, bfc_plural(input.events.unknown_frees));
    const struct settings settings = start_as_recorded(a, &input, a->trace);
    int status = (a->compare ? compare_policies : run_one)(a, &input, &settings);
    input_free(&input);
    if (status == GOOD && (fflush(stdout) != 0 || ferror(stdout))) {
        fputs("bfcreplay: standard output cannot be written\n", stderr);
        return FAILED;
    }
    return status;
}

int main(int argc, char **argv) {
    struct arguments a = {
        .settings = {
            .memory = UINT64_MAX, .lag = 100, .device_us = 100, .time_it = true, .repeats = 1}};
    bfc_options_init(&a.settings.options);
    a.given = calloc((size_t)argc, sizeof *a.given);
    if (!a.given) {
        fputs("bfcreplay: no memory\n", stderr);
        return FAILED;
    }
    file_drop_at_signals();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return GOOD;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("bfcreplay %s (trace layout %d)\n", BFC_VERSION, BFC_TRACE_VERSION);
            return GOOD;
        }
        int status = take_argument(&a, argv, &i);
        if (status != GOOD)
            return status;
    }
    int status = check_arguments(&a);
    if (status == GOOD)
        status = replay_all(&a);
    free(a.given);
    return status;
}
