#include "interpose/features/common/answer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/config/process.h"
#include "interpose/host/quiet.h"
#include "layout/segment.h"

static const char *const names[BFC_ANSWERS] = {
    [BFC_ANSWER_WHO] = BFC_WHO_ANSWER,
    [BFC_ANSWER_PLAN] = BFC_PLAN_ANSWER,
};
/* path of the last answer of each kind; "": none was written */
static char paths[BFC_ANSWERS][96];
static bool ended; /* atomic: whether the process is exiting */

/* Creates the file and writes the parts into it. Returns 0, or the errno of the call that
 * failed. */
static int write_file(const char *path, const struct bfc_answer_part *parts, size_t count) {
    int file = bfc_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    bool good = file >= 0;
    for (size_t i = 0; i < count && good; i++)
        good = bfc_write_all(file, parts[i].bytes, parts[i].size);
    int failed = good ? 0 : errno;
    if (file >= 0)
        close(file);
    if (file >= 0 && (failed || bfc_load_seq_cst(&ended)))
        unlink(path);
    return failed;
}

void bfc_answer_write(enum bfc_answer which, const struct bfc_answer_part *parts, size_t count) {
    struct bfc_quiet quiet;
    char *path = paths[which];
    bfc_quiet_begin(&quiet);
    snprintf(path, sizeof paths[which], BFC_SHARED_FOLDER "/" BFC_ANSWER_NAME_FORMAT, names[which],
             getuid(), (unsigned long)bfc_pid_namespace(), getpid());
    unlink(path);
    int failed = write_file(path, parts, count);
    bfc_quiet_end(&quiet);
    if (failed)
        bfc_log(BFC_LOG_WARN, "%s: %s: %s", names[which], path, strerror(failed));
}

__attribute__((destructor)) static void remove_files(void) {
    bfc_store_seq_cst(&ended, true);
    for (int which = 0; which < BFC_ANSWERS && bfc_process_if_made(); which++)
        if (paths[which][0])
            unlink(paths[which]);
}
