/* bfcstat who: who holds a job's memory. */
#include "tools/bfcstat/who/show.h"

#include "base/clock.h"
#include "tools/bfcstat/bfcstat.h"

/* The job looks up each sampled block: milliseconds when there are many. */
#define WHO_MS 5000

static void show(const struct request *request, const struct who_sums *sums,
                 struct who_names *names) {
    if (request->format == AS_JSON)
        show_who_json(sums, names, stdout);
    else if (request->collapsed)
        show_who_collapsed(sums, names, stdout);
    else
        show_who_text(sums, names, request->sites, stdout);
}

static int show_answer(const struct request *request, const struct bfc_segment_name *name,
                       const struct bfc_who *now, const struct bfc_who *before) {
    struct who_names names;
    struct who_sums sums = {0};
    bool enough = who_names_begin(&names, now, name->pid) && who_sum_up(&sums, &names, before);
    if (enough)
        show(request, &sums, &names);
    else
        fputs("bfcstat: out of memory\n", stderr);
    who_sums_free(&sums);
    who_names_end(&names);
    return enough ? SHOWN : REFUSED;
}

/* At one moment, or at two. */
static int ask(const struct request *request, int directory, const struct bfc_segment_name *name) {
    struct bfc_who before = {0}, now = {0};
    char reason[512];
    int status = REFUSED;
    bool good = bfc_who_ask(directory, name, WHO_MS, &now, reason, sizeof reason);
    if (good && request->between > 0) {
        before = now;
        bfc_nap((long)(request->between * 1e9));
        good = bfc_who_ask(directory, name, WHO_MS, &now, reason, sizeof reason);
    }
    if (good)
        status = show_answer(request, name, &now, request->between > 0 ? &before : NULL);
    else
        fprintf(stderr, "bfcstat: %s\n", reason);
    bfc_who_free(&before);
    bfc_who_free(&now);
    return status;
}

int run_who(const struct request *request, int directory) {
    struct bfc_segment_name name;
    int status = find_target(directory, request->directory, request->target, &name);
    return status == SHOWN ? ask(request, directory, &name) : status;
}
