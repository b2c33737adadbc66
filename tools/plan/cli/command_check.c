/* bfcplan check: checks whether a plan is valid for the lifetimes in a file. The check uses none of
 * the code that makes plans. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "planner/common/number.h"
#include "planner/model/validate.h"
#include "tools/plan/cli/arguments.h"
#include "tools/plan/cli/command.h"
#include "tools/plan/cli/progress.h"
#include "tools/plan/cli/source.h"
#include "tools/plan/common/whole_file.h"
#include "tools/plan/io/plan_file.h"

struct check {
    struct plan_file plan;
    struct lifetimes lifetimes;
    uint64_t *offsets;
    uint64_t *peaks;
    struct plan_error error;
};

static bool read_both(struct check *check, const char *plan, const char *file) {
    struct file_text text;
    return file_read(&text, plan, &check->error) &&
           plan_parse(&check->plan, &text, plan, &check->error) &&
           source_read(&check->lifetimes, file, check->plan.header.gap > 0, NULL, &check->error);
}

static bool fail_row(struct check *check, uint32_t row, const char *what) {
    char text[ROW_TEXT];
    return plan_fail(&check->error, "%s: %s: %s in the plan %s", check->lifetimes.path,
                     lifetimes_row_text(&check->lifetimes, row, text), what, check->plan.path);
}

static bool match_event(struct check *check, const struct bfc_plan_event *event, bool *seen) {
    const struct lifetime *row = &check->lifetimes.rows[event->row];
    const uint64_t asked = row->unplanned > 0 ? row->unplanned : row->size;
    uint64_t size;
    if (seen[event->row])
        return fail_row(check, event->row, "occurs twice");
    seen[event->row] = true;
    if (!plan_round_up(asked, check->plan.header.align, &size) || size != event->size)
        return fail_row(check, event->row, "has another size");
    if (row->birth != event->birth || lifetimes_end(&check->lifetimes, row) != event->death)
        return fail_row(check, event->row, "has another lifetime");
    if (row->space != event->arena)
        return fail_row(check, event->row, "has another space");
    if ((row->unplanned > 0) != (event->class_of == BFC_PLAN_UNPLANNED))
        return fail_row(check, event->row, "has another class");
    check->offsets[event->row] = row->unplanned > 0 ? 0 : event->offset;
    return true;
}

static bool match_events(struct check *check) {
    const struct lifetimes *lifetimes = &check->lifetimes;
    const struct bfc_plan_header *header = &check->plan.header;
    if (header->events != lifetimes->visible)
        return plan_fail(&check->error, "%s: %u rows, the plan %s is for %u", lifetimes->path,
                         lifetimes->visible, check->plan.path, header->events);
    if (header->arenas != (lifetimes->spaces.count > 0 ? lifetimes->spaces.count : 1))
        return plan_fail(&check->error, "%s: the plan %s has another number of spaces",
                         lifetimes->path, check->plan.path);
    bool *seen = calloc((size_t)lifetimes->count + 1, sizeof *seen);
    bool good = seen || plan_fail_memory(&check->error);
    for (uint32_t i = 0; good && i < header->events; i++)
        good = match_event(check, &check->plan.events[i], seen);
    for (uint32_t i = lifetimes->visible; good && i < lifetimes->count; i++)
        check->offsets[i] = check->offsets[lifetimes->rows[i].alias];
    free(seen);
    if (good && header->source_hash != lifetimes->hash)
        return plan_fail(&check->error,
                         "%s: the plan %s was made under other constraints than these rows have",
                         lifetimes->path, check->plan.path);
    return good;
}

static bool match_peaks(struct check *check) {
    const struct bfc_plan_header *header = &check->plan.header;
    uint64_t sum = 0;
    for (uint32_t a = 0; a < header->arenas; a++) {
        sum += check->peaks[a];
        if (check->peaks[a] != check->plan.arenas[a].peak)
            return plan_fail(&check->error, "%s: arena %u: its peak is %" PRIu64 ", not %" PRIu64,
                             check->plan.path, a, check->peaks[a], check->plan.arenas[a].peak);
    }
    return sum == header->peak ||
           plan_fail(&check->error, "%s: header: its peak is %" PRIu64 ", not %" PRIu64,
                     check->plan.path, sum, header->peak);
}

static bool check_plan(struct check *check, const char *plan, const char *file) {
    if (!read_both(check, plan, file))
        return false;
    const size_t rows = (size_t)check->lifetimes.count + 1;
    check->offsets = calloc(rows, sizeof *check->offsets);
    check->peaks = calloc(check->lifetimes.spaces.count + (size_t)1, sizeof *check->peaks);
    if (!check->offsets || !check->peaks)
        return plan_fail_memory(&check->error);
    progress_stage(STAGE_CHECK, VALIDATE_STEPS * (uint64_t)check->lifetimes.count);
    return match_events(check) &&
           validate(&check->lifetimes, check->offsets, check->plan.header.align,
                    check->plan.header.gap, check->peaks, &check->error) &&
           match_peaks(check);
}

static const enum stage stages[] = {STAGE_READ, STAGE_CHECK};
static const struct progress_way way = {stages, sizeof stages / sizeof *stages, false};

int command_check(int argc, char **argv) {
    const char *operands[2];
    bool json = false;
    struct check check = {0};
    const struct option options[] = {{"json", 0, OPTION_FLAG, &json, 0, 0}};
    if (!arguments_parse(argc, argv, options, 1, operands, 2, "a PLAN and a FILE"))
        return EXIT_USAGE;
    progress_start(&way);
    const bool good = check_plan(&check, operands[0], operands[1]);
    progress_stop();
    const struct bfc_plan_header *header = &check.plan.header;
    if (good && json)
        printf("{\"valid\":true,\"buffers\":%u,\"lower_bound\":%" PRIu64 ",\"peak\":%" PRIu64 "}\n",
               header->events, header->bound, header->peak);
    else if (good)
        printf("valid: %u buffer%s, lower bound %" PRIu64 " bytes, peak %" PRIu64 " bytes\n",
               header->events, bfc_plural(header->events), header->bound, header->peak);
    else if (json)
        puts("{\"valid\":false}");
    plan_free(&check.plan);
    lifetimes_free(&check.lifetimes);
    free(check.offsets);
    free(check.peaks);
    return good ? EXIT_GOOD : command_fail(&check.error);
}
