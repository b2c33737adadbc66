/* bfcstat who: shows which call stacks hold a job's memory, or saves the job's answer to a file. */
#include "tools/bfcstat/who/show_who.h"

#include "base/clock.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/plan/common/whole_file.h"

/* How long bfcstat waits for the job's answer. For the answer, the job looks up each block whose
 * call stack it has recorded, which takes milliseconds when there are many. */
#define WHO_MS 5000

static void show_who(const struct request *request, const struct who_sums *sums,
                     struct who_names *names) {
    if (request->format == AS_JSON)
        show_who_json(sums, names, stdout);
    else if (request->collapsed)
        show_who_collapsed(sums, names, stdout);
    else
        show_who_text(sums, names, request->by_tag, request->sites, stdout);
}

static int refuse_who(const char *reason) {
    fprintf(stderr, "bfcstat: %s\n", reason);
    return REFUSED;
}

/* Shows which call stacks held memory when the answer `now` was given, or how that differs from the
 * earlier answer `before` if `before` is not NULL. `pid` is the process that gave `now`; 0: both
 * answers come from files. */
static int show_moments(const struct request *request, int pid, const struct bfc_who *now,
                        const struct bfc_who *before) {
    struct who_names names;
    struct who_sums sums = {0};
    if (before && !bfc_who_follows(now, before))
        return refuse_who("these are not two moments of one job, the earlier one first");
    bool enough = who_names_begin(&names, now, pid) && who_sum_up(&sums, &names, before);
    if (enough)
        show_who(request, &sums, &names);
    who_sums_free(&sums);
    who_names_end(&names);
    return enough ? SHOWN : refuse_who("out of memory");
}

static int save_answer(const struct bfc_who *who, const char *path) {
    struct plan_error error;
    struct file_writer writer;
    file_drop_at_signals();
    if (!file_open(&writer, path, &error))
        return refuse_who(error.text);
    fwrite(who->copy, 1, who->size, writer.stream);
    return file_close(&writer, &error) ? SHOWN : refuse_who(error.text);
}

/* Shows the job's answer `now`, or saves it if -o names a file. */
static int use_answer(const struct request *request, int pid, const struct bfc_who *now,
                      const struct bfc_who *before) {
    return request->output ? save_answer(now, request->output)
                           : show_moments(request, pid, now, before);
}

static bool ask_job(int directory, const struct bfc_segment_name *name, struct bfc_who *who) {
    char reason[512];
    bool good = bfc_who_ask(directory, name, WHO_MS, false, who, reason, sizeof reason);
    if (!good)
        refuse_who(reason);
    return good;
}

static bool read_moment(const char *path, struct bfc_who *who) {
    char reason[4200];
    bool good = bfc_who_read(path, who, reason, sizeof reason);
    if (!good)
        refuse_who(reason);
    return good;
}

/* If the options ask for a comparison, fills in `before` with an earlier answer: from the file of
 * --diff=FILE, or by asking the job and then sleeping for --diff=SECONDS. Otherwise `before` stays
 * empty. False: a message was printed. */
static bool take_before(const struct request *request, int directory,
                        const struct bfc_segment_name *name, struct bfc_who *before) {
    if (request->before)
        return read_moment(request->before, before);
    if (request->between <= 0)
        return true;
    bool good = ask_job(directory, name, before);
    if (good)
        bfc_nap((long)(request->between * 1e9));
    return good;
}

static int run_on_job(const struct request *request, int directory) {
    struct bfc_segment_name name;
    struct bfc_who before = {0}, now = {0};
    int status = find_target(directory, request->directory, request->target, &name);
    if (status != SHOWN)
        return status;
    bool good = take_before(request, directory, &name, &before) && ask_job(directory, &name, &now);
    status = good ? use_answer(request, name.pid, &now, before.copy ? &before : NULL) : REFUSED;
    bfc_who_free(&before);
    bfc_who_free(&now);
    return status;
}

static int run_on_file(const struct request *request) {
    struct bfc_who before = {0}, now = {0};
    if (request->between > 0)
        return refuse_who("--diff=SECONDS needs a PID: a FILE does not change");
    bool good = read_moment(request->target, &now) &&
                (!request->before || read_moment(request->before, &before));
    int status = good ? use_answer(request, 0, &now, before.copy ? &before : NULL) : REFUSED;
    bfc_who_free(&before);
    bfc_who_free(&now);
    return status;
}

int run_who(const struct request *request, int directory) {
    return is_target(request->target) ? run_on_job(request, directory) : run_on_file(request);
}
