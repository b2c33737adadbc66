/* bfcplan plot: draws a plan, or lifetimes of buffers. If the lifetimes have no offsets, a plan is
 * made for them first. */
#include <stdio.h>
#include <stdlib.h>

#include "base/numbers.h"
#include "planner/common/number.h"
#include "planner/model/validate.h"
#include "planner/pack/solve.h"
#include "tools/plan/cli/arguments.h"
#include "tools/plan/cli/command.h"
#include "tools/plan/cli/progress.h"
#include "tools/plan/cli/source.h"
#include "tools/plan/common/whole_file.h"
#include "tools/plan/io/plan_file.h"
#include "tools/plan/io/plot.h"

#define SECONDS_TO_PACK 2.0
/* a buffer that lives for at least this share of the whole time has the colour of those that live
 * to the end */
#define LONG_PART 0.95

struct picture {
    struct plot_box *boxes;
    struct plot_arena *arenas;
    uint32_t boxes_count;
    uint32_t arenas_count;
};

static bool create_picture(struct picture *picture, uint32_t boxes, uint32_t arenas,
                           struct plan_error *error) {
    picture->boxes = calloc((size_t)boxes + 1, sizeof *picture->boxes);
    picture->arenas = calloc((size_t)arenas + 1, sizeof *picture->arenas);
    picture->arenas_count = arenas;
    return (picture->boxes && picture->arenas) || plan_fail_memory(error);
}

static bool take_plan(struct picture *picture, const struct plan_file *plan,
                      struct plan_error *error) {
    static const enum plot_colour colours[BFC_PLAN_CLASSES] = {PLOT_LIFELONG, PLOT_CROSSING,
                                                               PLOT_SHORT, PLOT_SHORT};
    if (!create_picture(picture, plan->header.events, plan->header.arenas, error))
        return false;
    for (uint32_t a = 0; a < plan->header.arenas; a++)
        picture->arenas[a] = (struct plot_arena){plan->arenas[a].bound, plan->arenas[a].peak};
    for (uint32_t i = 0; i < plan->header.events; i++) {
        const struct bfc_plan_event *e = &plan->events[i];
        if (e->class_of == BFC_PLAN_UNPLANNED)
            continue;
        picture->boxes[picture->boxes_count++] = (struct plot_box){
            e->birth, e->death, e->offset, e->size, e->arena, e->row, colours[e->class_of]};
    }
    return true;
}

static bool all_pinned(const struct lifetimes *lifetimes) {
    for (uint32_t i = 0; i < lifetimes->count; i++)
        if (lifetimes->rows[i].pin == NOT_PINNED)
            return false;
    return lifetimes->count > 0;
}

static bool pack_problem(const struct problem *problem, uint64_t *offsets,
                         struct plan_error *error) {
    static const bool never;
    const struct solve_options options = {.seconds = SECONDS_TO_PACK,
                                          .capacity = UINT64_MAX,
                                          .threads = 2,
                                          .seed = 1,
                                          .interrupted = &never,
                                          .progress = progress_packing};
    struct solve_result result;
    progress_stage(STAGE_PACK, 0);
    const bool good = solve(problem, &options, offsets, &result, error);
    if (good)
        free(result.peaks);
    return good;
}

static void take_rows(struct picture *picture, const struct lifetimes *lifetimes,
                      const uint64_t *offsets, uint64_t align) {
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        first = bfc_min(first, lifetimes->rows[i].birth);
        last = bfc_max(last, lifetimes->rows[i].death);
    }
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        const struct lifetime *row = &lifetimes->rows[i];
        uint64_t size = row->size;
        plan_round_up(row->size, align, &size);
        const bool lasting =
            (double)(row->death - row->birth) >= LONG_PART * (double)(last - first);
        picture->boxes[picture->boxes_count++] =
            (struct plot_box){row->birth,
                              row->death,
                              offsets[i],
                              size,
                              row->space,
                              i,
                              lasting ? PLOT_LIFELONG : PLOT_SHORT};
    }
}

static bool take_problem(struct picture *picture, const struct problem *problem, uint64_t *offsets,
                         uint64_t *peaks, struct plan_error *error) {
    const struct lifetimes *lifetimes = problem->lifetimes;
    const bool given = all_pinned(lifetimes);
    for (uint32_t i = 0; given && i < lifetimes->count; i++)
        offsets[i] = lifetimes->rows[i].pin;
    if (!given && !pack_problem(problem, offsets, error))
        return false;
    progress_stage(STAGE_CHECK, VALIDATE_STEPS * (uint64_t)lifetimes->count);
    if (!validate(lifetimes, offsets, problem->align, 0, peaks, error) ||
        !create_picture(picture, lifetimes->count, problem->count, error))
        return false;
    for (uint32_t a = 0; a < problem->count; a++)
        picture->arenas[a] = (struct plot_arena){problem->arenas[a].bound, peaks[a]};
    take_rows(picture, lifetimes, offsets, problem->align);
    return true;
}

static bool take_lifetimes(struct picture *picture, const struct lifetimes *lifetimes,
                           uint64_t align, struct plan_error *error) {
    struct problem problem;
    progress_stage(STAGE_PREPARE, PROBLEM_STEPS * (uint64_t)lifetimes->count);
    if (!problem_build(&problem, lifetimes, align, 0, error))
        return false;
    uint64_t *offsets = malloc(((size_t)lifetimes->count + 1) * sizeof *offsets);
    uint64_t *peaks = calloc((size_t)problem.count + 1, sizeof *peaks);
    const bool good = offsets && peaks ? take_problem(picture, &problem, offsets, peaks, error)
                                       : plan_fail_memory(error);
    free(offsets);
    free(peaks);
    problem_free(&problem);
    return good;
}

static bool take_file(struct picture *picture, const char *path, uint64_t align,
                      struct plan_error *error) {
    struct file_text text;
    struct plan_file plan;
    struct lifetimes lifetimes;
    bool good;
    if (!file_read(&text, path, error))
        return false;
    if (plan_looks_like(&text)) {
        if (!plan_parse(&plan, &text, path, error))
            return false;
        good = take_plan(picture, &plan, error);
        plan_free(&plan);
        return good;
    }
    if (!source_take(&lifetimes, &text, path, false, NULL, error))
        return false;
    good = take_lifetimes(picture, &lifetimes, align, error);
    lifetimes_free(&lifetimes);
    return good;
}

static bool write_picture(const struct picture *picture, const char *path,
                          struct plan_error *error) {
    progress_stage(STAGE_WRITE, 0);
    return plot_write(&(struct plot){picture->boxes, picture->boxes_count, picture->arenas,
                                     picture->arenas_count},
                      path, error);
}

static const enum stage stages[] = {STAGE_READ, STAGE_PREPARE, STAGE_PACK, STAGE_CHECK,
                                    STAGE_WRITE};
static const struct progress_way way = {stages, sizeof stages / sizeof *stages, false};

int command_plot(int argc, char **argv) {
    const char *file, *output = NULL;
    uint64_t align = 512;
    struct picture picture = {0};
    struct plan_error error;
    const struct option options[] = {{"output", 'o', OPTION_TEXT, &output, 0, 0},
                                     {"align", 0, OPTION_BYTES, &align, 1, (uint64_t)1 << 40}};
    if (!arguments_parse(argc, argv, options, 2, &file, 1, "one FILE or PLAN"))
        return EXIT_USAGE;
    if (!output)
        return command_misuse("plot needs -o OUT.svg");
    progress_start(&way);
    const bool good = file_check_output(output, &error) &&
                      take_file(&picture, file, align, &error) &&
                      write_picture(&picture, output, &error);
    progress_stop();
    free(picture.boxes);
    free(picture.arenas);
    return good ? EXIT_GOOD : command_fail(&error);
}
