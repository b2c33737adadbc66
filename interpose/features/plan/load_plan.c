/* Reads the file of BFC_PLAN into memory of our own, so that nobody can change it later. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cancel.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/config/log.h"
#include "interpose/config/process.h"
#include "interpose/config/program.h"
#include "interpose/features/plan/followed_plan.h"

#define FILE_MOST ((uint64_t)64 << 20)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool looked; /* guarded by the mutex */
static struct bfc_plan plan;
static const struct bfc_plan *accepted; /* `plan`, or NULL if there is none */

/* Returns the file's bytes, or NULL and the reason in `why`. */
static void *read_bytes(int file, uint64_t size, char why[BFC_PLAN_WHY]) {
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t done = 0;
    ssize_t got = 1;
    if (bytes == MAP_FAILED) {
        snprintf(why, BFC_PLAN_WHY, "the host has no memory for it");
        return NULL;
    }
    while (done < size && (got > 0 || (got < 0 && errno == EINTR))) {
        got = read(file, bytes + done, size - done);
        done += got > 0 ? (uint64_t)got : 0;
    }
    if (done == size)
        return bytes;
    snprintf(why, BFC_PLAN_WHY, got < 0 ? "it cannot be read: %s" : "it became shorter",
             strerror(errno));
    munmap(bytes, size);
    return NULL;
}

static bool is_acceptable(int file, uint64_t *size, char why[BFC_PLAN_WHY]) {
    struct stat status;
    bool regular = bfc_file_status(file, &status) && S_ISREG(status.st_mode);
    *size = regular ? (uint64_t)status.st_size : 0;
    if (!regular)
        snprintf(why, BFC_PLAN_WHY, "it is not a regular file");
    else if (*size < sizeof(struct bfc_plan_header))
        snprintf(why, BFC_PLAN_WHY, "it is not a plan of bfcplan");
    else if (*size > FILE_MOST)
        snprintf(why, BFC_PLAN_WHY, "it is larger than %s", BFC_BYTES(FILE_MOST));
    else
        return true;
    return false;
}

/* Whether the plan was made of a recording of this program. */
static bool is_ours(char why[BFC_PLAN_WHY]) {
    uint64_t ours = bfc_plan_program(bfc_program_executable_hash(), bfc_program_argument_hash());
    if (!plan.header->program_hash || plan.header->program_hash == ours)
        return true;
    snprintf(why, BFC_PLAN_WHY,
             "it was made of a recording of another program, or of other arguments");
    return false;
}

static bool take_file(int file, char why[BFC_PLAN_WHY]) {
    uint64_t size;
    void *bytes = is_acceptable(file, &size, why) ? read_bytes(file, size, why) : NULL;
    if (!bytes)
        return false;
    if (bfc_plan_read(&plan, bytes, size, why) && is_ours(why))
        return true;
    munmap(bytes, size);
    return false;
}

static void look_for_file(const char *path) {
    char why[BFC_PLAN_WHY];
    int cancel = bfc_cancel_disable(), reason = errno;
    int file = bfc_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    bool good = file >= 0 && take_file(file, why);
    if (file < 0)
        snprintf(why, sizeof why, "it cannot be opened: %s", strerror(errno));
    else
        close(file);
    if (good)
        accepted = &plan;
    else
        bfc_log(BFC_LOG_ERROR, "BFC_PLAN=%.200s: %s; the job runs without a plan", path, why);
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
