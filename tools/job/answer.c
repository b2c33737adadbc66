#include "tools/job/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/shared_folder.h"
#include "tools/job/client.h"
#include "tools/job/guard.h"

/* How often a reader asks the job at most. It must ask again if another reader of the same job has
 * taken the file with the answer. */
#define MOST_TRIES 100

struct asking {
    const struct bfc_question *question;
    struct bfc_bounded_wait wait;
    bool has_helper, served, written;
};

static enum bfc_read_result ask_question(const struct bfc_segment_look *look, char *base,
                                         void *context) {
    struct asking *asking = context;
    struct bfc_segment_header *header = (struct bfc_segment_header *)(void *)base;
    (void)look;
    asking->has_helper = bfc_ask_wait_for_helper(header);
    if (!asking->has_helper)
        return BFC_READ_OK;
    /* The request raises the word that counts requests to `asked` or more. The word is not read
     * after the request: other readers may have raised it further by then, and their requests may
     * still be unanswered. */
    uint32_t asked = bfc_load_relaxed(asking->question->asked(header)) + 1;
    struct bfc_request request = asking->question->request(header);
    while (!(asking->served = bfc_request_is_served(&request)))
        if (!bfc_bounded_wait_nap(&asking->wait))
            break;
    /* A job whose library is too old to know this question also marks the request as served, but
     * never changes the word in which it would count answers to this question. So only that word
     * tells whether the job has answered. */
    uint32_t written = bfc_load_acquire(asking->question->written(header));
    asking->written = (int32_t)(written - asked) >= 0;
    return BFC_READ_OK;
}

static bool ask_job(int directory, const struct bfc_segment_name *name,
                    const struct bfc_question *question, unsigned timeout_ms, char *reason,
                    size_t size) {
    const struct bfc_segment_look look = {.name = name, .reason = reason, .reason_size = size};
    struct asking asking = {.question = question, .wait = bfc_ask_wait(timeout_ms)};
    if (bfc_segment_visit_guarded(&look, directory, true, ask_question, &asking) != BFC_READ_OK)
        return false;
    if (!asking.has_helper)
        snprintf(reason, size, "process %d has ended, or has no helper thread", name->pid);
    else if (!asking.served)
        snprintf(reason, size, "process %d does not answer: it is stopped, or has ended",
                 name->pid);
    else if (!asking.written)
        snprintf(reason, size, "process %d runs an older bfcpreload, %s", name->pid,
                 question->unknown);
    return asking.written;
}

static bool read_all(int file, char *bytes, size_t size) {
    while (size) {
        ssize_t length = read(file, bytes, size);
        if (length <= 0)
            return false;
        bytes += length;
        size -= (size_t)length;
    }
    return true;
}

void *bfc_answer_read(int file, size_t least, size_t most, size_t *size) {
    struct stat status;
    if (!bfc_file_status(file, &status) || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size > most || (size_t)status.st_size < least)
        return NULL;
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size + 1);
    if (bytes && !read_all(file, bytes, *size)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static bool is_of_owner(int directory, const struct bfc_segment_name *name, int file) {
    struct stat answer, segment;
    return bfc_file_status(file, &answer) && bfc_file_status_at(directory, name->text, &segment) &&
           answer.st_uid == segment.st_uid;
}

enum outcome { TAKEN, AGAIN, REFUSED };

/* Reads and removes the answer's file. AGAIN: the file is missing or unusable, because another
 * reader may have taken it, or made the job write it anew meanwhile. Then the job must be asked
 * again. */
static enum outcome take_file(int directory, const struct bfc_segment_name *name,
                              const struct bfc_question *question, bfc_answer_take *take, void *to,
                              char *reason, size_t size) {
    char path[BFC_SEGMENT_NAME_MAX + 16];
    snprintf(path, sizeof path, BFC_ANSWER_NAME_FORMAT, question->answer, name->uid,
             (unsigned long)name->pid_namespace, name->pid);
    int file = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && errno == ENOENT)
        snprintf(reason, size, "process %d %s", name->pid, question->none);
    else if (file < 0)
        snprintf(reason, size, "%s: %s", path, strerror(errno));
    if (file < 0)
        return errno == ENOENT ? AGAIN : REFUSED;
    bool own = is_of_owner(directory, name, file), good = own && take(file, to);
    if (!good)
        snprintf(reason, size, "%s: %s", path, own ? "damaged" : "it is not the job's owner's");
    close(file);
    unlinkat(directory, path, 0);
    return good ? TAKEN : AGAIN;
}

bool bfc_answer_fetch(int directory, const struct bfc_segment_name *name,
                      const struct bfc_question *question, unsigned timeout_ms,
                      bfc_answer_take *take, void *to, char *reason, size_t size) {
    enum outcome outcome = AGAIN;
    for (int tries = 0; tries < MOST_TRIES && outcome == AGAIN; tries++) {
        if (!ask_job(directory, name, question, timeout_ms, reason, size))
            return false;
        outcome = take_file(directory, name, question, take, to, reason, size);
    }
    return outcome == TAKEN;
}
