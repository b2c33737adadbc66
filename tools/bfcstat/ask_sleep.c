/* The commands bfcstat sleep and bfcstat wake: ask a job to give its device memory back to the
 * device and to save the contents on the host, or to take the memory again. */
#include "tools/bfcstat/bfcstat.h"
#include "tools/job/client.h"
#include "tools/text/print_text.h"

/* How long bfcstat waits for the job's answer. Copying the contents of a whole device takes seconds
 * to host memory, and a minute or two to a disk; a job that has to wait until the device has memory
 * for it answers later still. */
#define SLEEP_MS 300000

static int show_refused(int pid, const char *what, const struct bfc_segment_sleep *sleep) {
    char why[sizeof sleep->why];
    text_printable(sleep->why, why, sizeof why);
    fprintf(stderr, "bfcstat: process %d %s%s%s\n", pid, what, why[0] ? ": " : "", why);
    return REFUSED;
}

static int show_asleep(int pid, const struct bfc_sleep_answer *answer) {
    char gone[TEXT_FIGURE], kept[TEXT_FIGURE], where[sizeof answer->sleep.where];
    text_printable(answer->sleep.where, where, sizeof where);
    if (answer->sleep.state != BFC_SLEEP_ASLEEP)
        return show_refused(pid, "is awake", &answer->sleep);
    printf("%d is asleep: %s went back to the device, %s stay; the contents are in %s\n", pid,
           bfc_bytes_text(answer->asleep, gone, sizeof gone),
           bfc_bytes_text(answer->sleep.kept, kept, sizeof kept), where);
    return SHOWN;
}

static int show_awake(int pid, const struct bfc_sleep_answer *answer) {
    if (answer->sleep.state == BFC_SLEEP_ASLEEP)
        return show_refused(pid, "is still asleep: the device has no memory for it",
                            &answer->sleep);
    printf("%d is awake\n", pid);
    return SHOWN;
}

static int run_for(const struct request *request, int directory, bool wake) {
    struct bfc_segment_name name;
    struct bfc_sleep_answer answer;
    char reason[512];
    int status = find_target(directory, request->directory, request->target, &name);
    if (status != SHOWN)
        return status;
    switch (
        bfc_segment_ask_sleep(directory, &name, wake, SLEEP_MS, &answer, reason, sizeof reason)) {
    case BFC_ASK_DONE:
        return wake ? show_awake(name.pid, &answer) : show_asleep(name.pid, &answer);
    case BFC_ASK_UNANSWERED:
        fprintf(stderr,
                "bfcstat: process %d does not answer: it is stopped, has ended, or was built "
                "without the feature sleep\n",
                name.pid);
        return REFUSED;
    case BFC_ASK_REFUSED:
        break;
    }
    fprintf(stderr, "bfcstat: %s\n", reason);
    return REFUSED;
}

int run_sleep(const struct request *request, int directory) {
    return run_for(request, directory, false);
}

int run_wake(const struct request *request, int directory) {
    return run_for(request, directory, true);
}
