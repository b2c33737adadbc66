#include "tools/bfcstat/record/record_who.h"

#include "base/clock.h"
#include "base/numbers.h"
#include "layout/segment.h"
#include "tools/bfcstat/who/lines.h"

/* How many milliseconds bfcstat record waits for a job's answer. A job that is stopped must not
 * delay the next samples for long. */
#define WHO_MS 1000

static uint64_t job_us(const struct recorded_who *recorded, uint64_t ns) {
    return bfc_subtract_saturating(ns, recorded->created_ns) / 1000;
}

/* Writes the sites (call stacks) of sampled allocations that are new. Threads take the numbers of
 * their events in batches, so an event may come later than one with a higher number, which was
 * written already. So the events with the last 1,024 numbers are looked through again. */
static void put_taken(struct recorded_who *recorded, const struct bfc_who *who, FILE *file) {
    uint64_t slack = BFC_EVENTS / 4;
    recorded->next_event =
        who_put_taken(who, bfc_subtract_saturating(recorded->next_event, slack), file);
}

static void put_moment(struct recorded_who *recorded, const struct bfc_who *who, FILE *file) {
    struct who_names names;
    if (who_names_begin(&names, who, recorded->name->pid)) {
        who_put_sites(&names, recorded->sites, file);
        recorded->sites = who->header.sites;
        if (recorded->events)
            put_taken(recorded, who, file);
        who_put_moment(who, job_us(recorded, who->header.written_ns), file);
    }
    who_names_end(&names);
}

bool ask_recorded_who(const struct recorded_who *recorded, struct bfc_who *who, char *reason,
                      size_t size) {
    return bfc_who_ask(recorded->directory, recorded->name, WHO_MS, true, who, reason, size);
}

void put_recorded_who(struct recorded_who *recorded, const struct bfc_who *who, const char *reason,
                      FILE *file) {
    char none[128];
    if (who && recorded->space)
        who_put_space(who, job_us(recorded, who->header.written_ns), file);
    if (who && who->header.samples > 0) {
        put_moment(recorded, who, file);
        return;
    }
    if (who)
        snprintf(none, sizeof none, "process %d has taken none: %s", who->header.pid,
                 who->header.stacks == 0 ? "BFC_STACKS=off" : "it has allocated too little so far");
    who_put_reason(who ? none : reason, job_us(recorded, bfc_wall_clock_ns()), file);
}
