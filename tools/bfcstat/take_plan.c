/* bfcstat plan: saves the plan that a job follows (an address for each of its allocations), so that
 * the next run can begin with it. */
#include <inttypes.h>

#include "base/bytes.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/job/job_plan.h"
#include "tools/plan/common/whole_file.h"
#include "tools/text/print_text.h"

/* How many milliseconds bfcstat waits for the job's answer. The job copies its plan, which takes
 * some milliseconds for hundreds of thousands of allocations. */
#define PLAN_MS 10000

static int refuse_plan(const char *reason) {
    fprintf(stderr, "bfcstat: %s\n", reason);
    return REFUSED;
}

static bool is_of_device(const struct plan_file *plan, long device) {
    for (uint32_t i = 0; i < plan->header.arenas; i++)
        if (device < 0 || plan->arenas[i].device == (uint32_t)device)
            return true;
    return false;
}

/* Returns the plan that needs the most memory, of those that contexts of this device follow, or, if
 * `device` is -1, contexts of any device. NULL: there is none. */
static const struct plan_file *find_largest(const struct bfc_plans *plans, long device) {
    const struct plan_file *found = NULL;
    for (size_t i = 0; i < plans->count; i++) {
        const struct plan_file *plan = &plans->list[i];
        if (is_of_device(plan, device) && (!found || plan->header.peak > found->header.peak))
            found = plan;
    }
    return found;
}

/* Returns the plan to save. NULL, after a message: there is none for this device, or `device` is -1
 * and the job has plans of several devices. */
static const struct plan_file *choose_plan(const struct bfc_plans *plans, long device) {
    const struct plan_file *found = find_largest(plans, device);
    if (!found)
        fprintf(stderr, "bfcstat: the job has no plan of device %ld, but of device %" PRIu32 "\n",
                device, plans->list[0].arenas[0].device);
    for (size_t i = 0; i < plans->count && found && device < 0; i++)
        if (!is_of_device(&plans->list[i], found->arenas[0].device)) {
            fprintf(stderr,
                    "bfcstat: the job has plans of several devices, among them %" PRIu32
                    " and %" PRIu32 ": --device=NUMBER says which is wanted\n",
                    found->arenas[0].device, plans->list[i].arenas[0].device);
            return NULL;
        }
    return found;
}

static int save_plan(const struct plan_file *plan, const char *path) {
    char a[TEXT_FIGURE], b[TEXT_FIGURE];
    struct plan_error error;
    struct file_writer writer;
    file_drop_at_signals();
    if (!file_open(&writer, path, &error))
        return refuse_plan(error.text);
    fwrite(plan->text.bytes, 1, plan->text.size, writer.stream);
    if (!file_close(&writer, &error))
        return refuse_plan(error.text);
    printf("%s: %" PRIu32 " allocation%s before the loop, %" PRIu32 " in it; %s where %s are alive "
           "at a time\nthe same program follows it with BFC_PLAN=%s\n",
           path, plan->header.prefix, bfc_plural(plan->header.prefix), plan->header.period,
           bfc_bytes_text(plan->header.peak, a, sizeof a),
           bfc_bytes_text(plan->header.bound, b, sizeof b), path);
    return SHOWN;
}

int run_plan(const struct request *request, int directory) {
    struct bfc_segment_name name;
    struct bfc_plans plans;
    char reason[512];
    int status = find_target(directory, request->directory, request->target, &name);
    if (status != SHOWN)
        return status;
    if (!bfc_plans_ask(directory, &name, PLAN_MS, &plans, reason, sizeof reason))
        return refuse_plan(reason);
    const struct plan_file *plan = choose_plan(&plans, request->device);
    status = plan ? save_plan(plan, request->output) : REFUSED;
    bfc_plans_free(&plans);
    return status;
}
