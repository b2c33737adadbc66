#include "tools/replay/show_replay.h"

#include <inttypes.h>
#include <string.h>

#include "tools/plan/io/csv.h"

static const char *const policies[] = {"bfc", "tf", "pytorch"};
static const char *const growths[] = {"double", "fixed", "exact", "preallocate"};
static const char *const modes[] = {"sync", "lazy", "ordered"};

static double modelled_ms(const struct shown *shown) {
    return shown->result.device_us / 1000;
}

static void put_passes(const struct shown *shown, FILE *stream) {
    fprintf(stream, ", \"pass_calls\": [");
    for (uint32_t i = 0; i < shown->settings.repeats; i++)
        fprintf(stream, "%s%" PRIu64, i ? ", " : "", shown->result.pass_calls[i]);
    fputs("]", stream);
}

void show_json(const struct shown *shown, FILE *stream) {
    const struct bfc_options *options = &shown->settings.options;
    const struct result *r = &shown->result;
    fprintf(stream,
            "{\"policy\": \"%s\", \"growth\": \"%s\", \"free\": \"%s\", \"pairs\": %" PRIu64
            ", \"peak_live\": %" PRIu64 ", \"peak_reserved\": %" PRIu64
            ", \"waste\": %.6f, \"device_calls\": %" PRIu64
            ", \"device_ms\": %.3f, \"ns_per_pair\": %.1f, \"failed\": %" PRIu64
            ", \"retries\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"backing\": \"%s\""
            ", \"moved\": %" PRIu64 ", \"pass_bytes\": %" PRIu64 ", \"spilled_blocks\": %" PRIu64
            ", \"peak_spilled\": %" PRIu64,
            policies[options->policy], growths[options->growth], modes[options->free_mode],
            r->pairs, r->peak_live, r->peak_reserved, r->waste, r->device_calls, modelled_ms(shown),
            r->ns_per_pair, r->failed, r->retries, r->waits, r->paged ? "pages" : "malloc",
            r->moved, r->pass_bytes, r->spilled.blocks, r->spilled.peak);
    put_passes(shown, stream);
    fputs("}\n", stream);
}

static const char *print_mib(uint64_t bytes, char text[32]) {
    snprintf(text, 32, "%.1f MiB", (double)bytes / 1048576);
    return text;
}

/* Prints how many calls of the device each pass (replay of the whole input) made, and how many
 * bytes of pages were moved. */
static void put_pages(const struct shown *shown, FILE *stream) {
    const struct result *r = &shown->result;
    char text[32];
    if (shown->settings.repeats > 1) {
        fputs("  calls by pass  ", stream);
        for (uint32_t i = 0; i < shown->settings.repeats; i++)
            fprintf(stream, " %" PRIu64, r->pass_calls[i]);
        fputs("\n", stream);
    }
    if (r->paged)
        fprintf(stream, "  pages moved     %14s  in all\n", print_mib(r->moved, text));
}

/* Prints how much host memory (BFC_SPILL) the recorded job had. In the replay those allocations get
 * device memory. */
static void put_spilled(const struct spilled *spilled, FILE *stream) {
    char text[32];
    if (spilled->blocks)
        fprintf(stream,
                "  spilled         %14s  at most, %" PRIu64
                " blocks of host memory (BFC_SPILL) when it was recorded\n",
                print_mib(spilled->peak, text), spilled->blocks);
}

void show_text(const struct shown *shown, FILE *stream) {
    const struct bfc_options *options = &shown->settings.options;
    const struct result *r = &shown->result;
    char text[32];
    fprintf(stream, "policy %s, growth %s, free %s%s\n", policies[options->policy],
            growths[options->growth], modes[options->free_mode], r->paged ? ", backing pages" : "");
    fprintf(stream, "  most live       %14s  %" PRIu64 " bytes\n", print_mib(r->peak_live, text),
            r->peak_live);
    put_spilled(&r->spilled, stream);
    fprintf(stream, "  most reserved   %14s  %" PRIu64 " bytes, %.1f %% of it waste\n",
            print_mib(r->peak_reserved, text), r->peak_reserved, r->waste * 100);
    fprintf(stream, "  device calls    %14" PRIu64 "  %.1f ms", r->device_calls,
            modelled_ms(shown));
    if (!r->paged)
        fprintf(stream, " at %g us each", shown->settings.device_us);
    fprintf(stream, "; without a pool %" PRIu64 "\n", r->pairs + r->frees);
    put_pages(shown, stream);
    fprintf(stream, "  pairs           %14" PRIu64 "  %.0f ns each\n", r->pairs, r->ns_per_pair);
    fprintf(stream,
            "  failed          %14" PRIu64 "  after retries %" PRIu64 ", waits %" PRIu64 "\n",
            r->failed, r->retries, r->waits);
}

static bool is_better(const struct result *a, const struct result *b) {
    if (a->failed != b->failed)
        return a->failed < b->failed;
    if (a->peak_reserved != b->peak_reserved)
        return a->peak_reserved < b->peak_reserved;
    return a->device_calls < b->device_calls;
}

static unsigned find_best(const struct shown *shown, unsigned count) {
    unsigned best = 0;
    for (unsigned i = 1; i < count; i++)
        if (is_better(&shown[i].result, &shown[best].result))
            best = i;
    return best;
}

bool setting_matters(const char *name) {
    static const char *const ignored[] = {
        "BFC_DISABLE",   "BFC_IPC",      "BFC_SPILL",   "BFC_TRIM_IDLE", "BFC_YIELD",
        "BFC_WAIT",      "BFC_DEEPBIND", "BFC_RUNTIME", "BFC_RECORD",    "BFC_PLAN",
        "BFC_STATS",     "BFC_STACKS",   "BFC_TAGS",    "BFC_LOG",       "BFC_SUMMARY",
        "BFC_LEAK_EXIT", "BFC_STRICT",   "BFC_ONLY",    "BFC_NOT"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(name, ignored[i]) == 0)
            return false;
    return true;
}

void put_changed(const struct bfc_options *options, char *text, size_t size) {
    size_t used = 0;
    char value[256];
    text[0] = '\0';
    for (size_t i = 0; i < bfc_option_count && used < size; i++) {
        const struct bfc_option *option = &bfc_option_table[i];
        bfc_option_print(options, option->name, value, sizeof value);
        if (setting_matters(option->name) && strcmp(value, option->standard) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s=%s", used ? " " : "",
                                     option->name, value);
    }
}

/* Writes the environment variables that a user sets to get these settings. Policy and growth are
 * written even if they are the defaults, because the user's settings file may have other values. */
static void put_settings(const struct shown *shown, FILE *stream) {
    const struct bfc_options *options = &shown->settings.options;
    struct bfc_options others = *options;
    char text[1024];
    others.policy = BFC_POLICY_BFC;
    others.growth = BFC_GROWTH_DOUBLE;
    put_changed(&others, text, sizeof text);
    fprintf(stream, "BFC_POLICY=%s BFC_GROWTH=%s%s%s", policies[options->policy],
            growths[options->growth], *text ? " " : "", text);
}

static bool is_start(const struct shown *shown, const struct settings *start) {
    return shown->settings.options.policy == start->options.policy &&
           shown->settings.options.growth == start->options.growth;
}

/* Prints which policy and which way to grow the pool are best, and how to set them. Settings with
 * which allocations fail are not recommended. */
static void show_advice(const struct shown *best, const struct settings *start, FILE *stream) {
    const struct result *r = &best->result;
    if (r->pairs + r->failed == 0) {
        fputs("none to recommend: there is no allocation\n", stream);
        return;
    }
    if (r->failed == 0) {
        fprintf(stream, "best: policy %s, growth %s%s (least reserved, then fewest device calls)\n",
                policies[best->settings.options.policy], growths[best->settings.options.growth],
                is_start(best, start) ? ", as it is" : "");
        fputs("  type: ", stream);
        put_settings(best, stream);
        fputs(" bfcrun PROGRAM\n", stream);
        return;
    }
    fputs("none to recommend: with each of them allocations fail, with ", stream);
    put_settings(best, stream);
    fprintf(stream,
            " the fewest (%" PRIu64 " of %" PRIu64 "); it needs a larger --memory or limit\n",
            r->failed, r->pairs + r->failed);
}

void show_table(const struct shown *shown, unsigned count, const struct settings *start,
                FILE *stream) {
    char live[32], reserved[32];
    fprintf(stream, "%-8s %-12s %16s %16s %7s %8s %10s %8s %7s\n", "policy", "growth", "most live",
            "most reserved", "waste", "device", "device ms", "ns/pair", "failed");
    for (unsigned i = 0; i < count; i++) {
        const struct bfc_options *options = &shown[i].settings.options;
        const struct result *r = &shown[i].result;
        fprintf(stream, "%-8s %-12s %16s %16s %6.1f%% %8" PRIu64 " %10.1f %8.0f %7" PRIu64 "\n",
                policies[options->policy], growths[options->growth], print_mib(r->peak_live, live),
                print_mib(r->peak_reserved, reserved), r->waste * 100, r->device_calls,
                modelled_ms(&shown[i]), r->ns_per_pair, r->failed);
    }
    show_advice(&shown[find_best(shown, count)], start, stream);
}

static void put_entry(const struct input *input, const struct log_entry *entry, FILE *stream) {
    static const char *const ops[] = {"reserve", "release", "allocate", "free", "fail"};
    char text[INPUT_NAME];
    fprintf(stream, "%s,", ops[entry->op]);
    if (entry->op != LOG_RESERVE && entry->op != LOG_RELEASE)
        csv_write_field(stream, input_name(input, entry->allocation, text));
    if (entry->op == LOG_FAIL)
        fprintf(stream, ",,,%" PRIu64 "\n", entry->bytes);
    else
        fprintf(stream, ",%u,%" PRIu64 ",%" PRIu64 "\n", entry->region, entry->address,
                entry->bytes);
}

bool show_events(const struct input *input, const struct log *log, const char *path,
                 struct plan_error *error) {
    struct file_writer writer;
    if (!file_open(&writer, path, error))
        return false;
    fputs("op,id,region,address,bytes\n", writer.stream);
    for (size_t i = 0; i < log->count; i++)
        put_entry(input, &log->list[i], writer.stream);
    return file_close(&writer, error);
}
