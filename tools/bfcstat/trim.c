/* bfcstat trim: asks a job to give cached memory back to the device. */
#include "tools/bfcstat/bfcstat.h"
#include "tools/job/client.h"
#include "tools/text/print_text.h"

/* How many milliseconds bfcstat waits for the job's answer. The job makes a driver call for each
 * region that it gives back, which takes some seconds for thousands of regions. */
#define TRIM_MS 10000

int run_trim(const struct request *request, int directory) {
    struct bfc_segment_name name;
    char reason[512], figure[TEXT_FIGURE];
    uint64_t released;
    int status = find_target(directory, request->directory, request->target, &name);
    if (status != SHOWN)
        return status;
    switch (bfc_segment_trim(directory, &name, request->bytes, TRIM_MS, &released, reason,
                             sizeof reason)) {
    case BFC_ASK_DONE:
        printf("%d gave back %s\n", name.pid, bfc_bytes_text(released, figure, sizeof figure));
        return SHOWN;
    case BFC_ASK_UNANSWERED:
        fprintf(stderr, "bfcstat: process %d does not answer: it is stopped, or has ended\n",
                name.pid);
        return REFUSED;
    case BFC_ASK_REFUSED:
        break;
    }
    fprintf(stderr, "bfcstat: %s\n", reason);
    return REFUSED;
}
