/*
 * bfcstat report: makes one web page that needs no other files. It shows a recording, or a job as
 * it is now: the job's last events, its memory and the map of its regions.
 */
#include <errno.h>
#include <string.h>

#include "tools/bfcstat/bfcstat.h"
#include "tools/plan/common/whole_file.h"
#include "tools/report/page.h"

static int refuse_report(const char *name, const char *what) {
    fprintf(stderr, "bfcstat: %s: %s\n", name, what);
    return REFUSED;
}

static int refuse_page(const char *why) {
    fprintf(stderr, "bfcstat: %s\n", why);
    return REFUSED;
}

static int copy_lines(const char *name, FILE *recording, FILE *page) {
    long left_out = report_copy(recording, page);
    if (left_out < 0)
        return refuse_report(name, "not a recording: bfcstat record makes them");
    if (left_out > 0)
        fprintf(stderr, "bfcstat: %s: %ld incomplete lines were left out\n", name, left_out);
    return SHOWN;
}

static int copy_beside(const char *name, FILE *page) {
    FILE *recording = fopen(name, "re");
    if (!recording)
        return refuse_report(name, strerror(errno));
    report_beside(page);
    int status = copy_lines(name, recording, page);
    fclose(recording);
    return status;
}

static int write_page(const struct request *request, FILE *recording, FILE *page) {
    report_begin(page);
    int status = copy_lines(request->target, recording, page);
    if (status == SHOWN && request->beside)
        status = copy_beside(request->beside, page);
    report_end(page);
    return status;
}

static int write_file(const struct request *request, FILE *recording) {
    struct plan_error error;
    struct file_writer writer;
    file_drop_at_signals();
    if (!file_open(&writer, request->output, &error))
        return refuse_page(error.text);
    int status = write_page(request, recording, writer.stream);
    if (status != SHOWN) {
        file_abandon(&writer);
        return status;
    }
    return file_close(&writer, &error) ? SHOWN : refuse_page(error.text);
}

static int write_output(const struct request *request, FILE *recording) {
    if (strcmp(request->output, "-") != 0)
        return write_file(request, recording);
    int status = write_page(request, recording, stdout);
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    return failed ? refuse_report("-", strerror(errno)) : status;
}

/* Opens the recording that the user names. If there is no such file, but the name is a PID or a
 * shared-memory segment's name, makes a temporary recording of that job as it is now. Sets
 * `*status` to an exit status of bfcstat. */
static FILE *open_recording(const struct request *request, int directory, int *status) {
    FILE *recording = fopen(request->target, "re");
    int reason = errno;
    if (recording || !is_target(request->target)) {
        *status = recording ? SHOWN : refuse_report(request->target, strerror(reason));
        return recording;
    }
    recording = tmpfile();
    if (!recording) {
        *status = refuse_report("a temporary file", strerror(errno));
        return NULL;
    }
    *status = record_once(request, directory, recording);
    rewind(recording);
    return recording;
}

int run_report(const struct request *request, int directory) {
    int status;
    FILE *recording = open_recording(request, directory, &status);
    if (status == SHOWN)
        status = write_output(request, recording);
    if (recording)
        fclose(recording);
    return status;
}
