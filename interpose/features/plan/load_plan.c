/* Reads the file of BFC_PLAN into memory of our own, so that nobody can change it later. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cancel.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/features/common/program.h"
#include "interpose/features/plan/followed_plan.h"

#define FILE_MOST ((size_t)64 << 20)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool looked; /* guarded by the mutex: whether the file was read, or reading it has failed */
static struct bfc_plan plan;
static const struct bfc_plan *accepted; /* points to `plan` if the file holds a valid one */

static bool read_bytes(int file, struct file_text *text, struct plan_error *error) {
    size_t done = 0;
    ssize_t got = 1;
    /* at least one byte, since some mallocs return NULL for 0 bytes */
    text->bytes = malloc(text->size + 1);
    if (!text->bytes)
        return plan_fail_memory(error);
    while (done < text->size && (got > 0 || (got < 0 && errno == EINTR))) {
        got = read(file, text->bytes + done, text->size - done);
        done += got > 0 ? (size_t)got : 0;
    }
    if (done == text->size)
        return true;
    plan_fail(error, got < 0 ? "it cannot be read: %s" : "it became shorter", strerror(errno));
    file_free(text);
    return false;
}

static bool is_acceptable(int file, size_t *size, struct plan_error *error) {
    struct stat status;
    if (!bfc_file_status(file, &status) || !S_ISREG(status.st_mode))
        return plan_fail(error, "it is not a regular file");
    *size = (size_t)status.st_size;
    return *size <= FILE_MOST || plan_fail(error, "it is larger than %s", BFC_BYTES(FILE_MOST));
}

/* Whether the plan was made of a recording of this program. */
static bool is_ours(struct plan_error *error) {
    uint64_t ours = bfc_plan_program(bfc_program_executable_hash(), bfc_program_argument_hash());
    return !plan.header->program_hash || plan.header->program_hash == ours ||
           plan_fail(error, "it was made of a recording of another program, or of other arguments");
}

static bool take_file(int file, struct plan_error *error) {
    struct file_text text;
    if (!is_acceptable(file, &text.size, error) || !read_bytes(file, &text, error) ||
        !bfc_plan_read(&plan, &text, error))
        return false;
    bool ours = is_ours(error);
    if (!ours)
        file_free(&plan.text);
    return ours;
}

static void look_for_file(const char *path) {
    struct plan_error error;
    int cancel = bfc_cancel_disable(), reason = errno;
    int file = bfc_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    bool good = file >= 0 && take_file(file, &error);
    if (file < 0)
        plan_fail(&error, "it cannot be opened: %s", strerror(errno));
    else
        close(file);
    if (good)
        accepted = &plan;
    else
        bfc_log(BFC_LOG_ERROR, "BFC_PLAN=%.200s: %s; the job runs without a plan", path,
                error.text);
    errno = reason;
    bfc_cancel_restore(cancel);
}

bool bfc_plan_is_automatic(void) {
    const struct bfc_process *process = bfc_process_if_made();
    return process && strcmp(process->options.plan, "auto") == 0;
}

const struct bfc_plan *bfc_plan_of_file(void) {
    const struct bfc_process *process = bfc_process_if_made();
    if (!process || !process->options.plan[0] || bfc_plan_is_automatic())
        return NULL;
    pthread_mutex_lock(&mutex);
    if (!looked)
        look_for_file(process->options.plan);
    looked = true;
    pthread_mutex_unlock(&mutex);
    return accepted;
}
