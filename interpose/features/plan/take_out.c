/* Writes the plans that this process follows, for the program's next run. */
#include "interpose/arena/arena.h"
#include "interpose/config/log.h"
#include "interpose/features/common/answer_file.h"
#include "interpose/features/common/program.h"
#include "interpose/features/plan/followed_plan.h"

struct taken {
    const struct bfc_plan *plans[BFC_SEGMENT_POOLS];
    /* for each automatic plan, the plan file that make_file has made */
    struct file_text texts[BFC_SEGMENT_POOLS];
    struct bfc_answer_part parts[BFC_SEGMENT_POOLS];
    size_t count;
};

/* Whether the plan is in the list already, as several contexts may follow the plan of one file. */
static bool is_taken(const struct taken *taken, const struct bfc_plan *plan) {
    size_t i = 0;
    while (i < taken->count && taken->plans[i] != plan)
        i++;
    return i < taken->count;
}

static bool make_file(struct file_text *text, const struct bfc_plan *plan) {
    struct plan_error error;
    uint64_t program = bfc_plan_program(bfc_program_executable_hash(), bfc_program_argument_hash());
    if (plan_with_lead(text, plan->header, plan->lead, program, &error))
        return true;
    bfc_log(BFC_LOG_WARN, "a plan is not taken out: %s", error.text);
    return false;
}

static void take_out(struct taken *taken, const struct bfc_plan *plan) {
    struct file_text *text = &taken->texts[taken->count];
    struct bfc_answer_part part = {plan->header, plan->header->file_bytes};
    if (plan->automatic) {
        if (!make_file(text, plan))
            return;
        part = (struct bfc_answer_part){text->bytes, text->size};
    }
    taken->plans[taken->count] = plan;
    taken->parts[taken->count++] = part;
}

void bfc_plan_take_out(void) {
    struct taken taken = {.count = 0};
    struct bfc_arena *arena = NULL;
    while ((arena = bfc_arena_next(arena))) {
        const struct bfc_plan *plan = bfc_plan_best_known(arena);
        if (plan && taken.count < BFC_SEGMENT_POOLS && !is_taken(&taken, plan))
            take_out(&taken, plan);
    }
    if (taken.count)
        bfc_answer_write(BFC_ANSWER_PLAN, taken.parts, taken.count);
    for (size_t i = 0; i < taken.count; i++)
        file_free(&taken.texts[i]);
}
