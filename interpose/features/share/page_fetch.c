/* Asks the process that exports a block for file descriptors of the block's pages. */
#include "interpose/features/share/page_message.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/features/share/token_table.h"

enum {
    TIMEOUT_SECONDS = 10, /* how long to wait for the exporter to connect */
    SLICE_MS = 100,
    REPLY_MS = 10000, /* how long to wait for the exporter's reply, as its driver may be busy */
};
#define NS_PER_SLICE (UINT64_C(1000000) * SLICE_MS)

static bool is_zombie(pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = bfc_open(path, O_RDONLY, 0);
    if (file < 0)
        return false;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = '\0';
    /* in /proc/PID/stat the process's state follows its name, which ends with ")" */
    const char *end = strrchr(text, ')');
    return end && (strncmp(end, ") Z", 3) == 0 || strncmp(end, ") X", 3) == 0);
}

/* Whether the exporter is known to have ended. That is not known of an exporter in another pid
 * namespace. */
static bool has_ended(const struct bfc_token *token) {
    if (token->pid_namespace != bfc_pid_namespace())
        return false;
    return (kill(token->pid, 0) != 0 && errno == ESRCH) || is_zombie(token->pid);
}

/* Waits for the exporter to connect. Wakes the exporter again every second, since an exporter with
 * many importers connects only to some of them each time that it is woken. */
static enum bfc_fetch_answer await_call(struct bfc_page_fetch *fetch,
                                        const struct bfc_local *listener) {
    uint64_t until = bfc_now_ns() + TIMEOUT_SECONDS * BFC_NS_PER_SECOND;
    for (unsigned slice = 0; slice < TIMEOUT_SECONDS * 1000 / SLICE_MS; slice++) {
        if (slice % (1000 / SLICE_MS) == 0 && !bfc_wakeup_signal(&fetch->token))
            return BFC_FETCH_SILENT;
        if (bfc_local_accept(listener, &fetch->exporter, SLICE_MS))
            return BFC_FETCH_DONE;
        if (has_ended(&fetch->token) || bfc_now_ns() >= until)
            return BFC_FETCH_SILENT;
    }
    return BFC_FETCH_SILENT;
}

enum bfc_fetch_answer bfc_page_fetch_begin(struct bfc_page_fetch *fetch,
                                           const struct bfc_token *token) {
    char path[BFC_CALLER_NAME];
    uint64_t number;
    struct bfc_local listener;
    *fetch = (struct bfc_page_fetch){.token = *token, .exporter = {.file = -1}};
    if (!bfc_fill_randomly(&number, sizeof number))
        return BFC_FETCH_FAILED;
    bfc_page_caller_path(path, token, number);
    if (!bfc_local_listen(&listener, path))
        return BFC_FETCH_FAILED;
    enum bfc_fetch_answer answer = await_call(fetch, &listener);
    unlink(path);
    bfc_local_end(&listener);
    return answer;
}

/* Returns the reason why no reply has come. An exporter that rejects a request, since the block was
 * freed, closes the connection. */
static enum bfc_fetch_answer explain_silence(const struct bfc_token *token) {
    if (errno == EMFILE)
        return BFC_FETCH_FAILED;
    bool waited = errno == ETIMEDOUT;
    return waited || has_ended(token) ? BFC_FETCH_SILENT : BFC_FETCH_STALE;
}

static enum bfc_fetch_answer receive_pages(struct bfc_page_fetch *fetch,
                                           const struct bfc_page_request *request,
                                           struct bfc_page_reply *reply, int *files) {
    unsigned count;
    if (!bfc_local_receive(&fetch->exporter, reply, sizeof *reply, files, &count, REPLY_MS))
        return explain_silence(&fetch->token);
    bool intact = bfc_page_reply_is_intact(fetch->token.key, request, reply);
    if (intact && count > 0 && reply->count == count)
        return BFC_FETCH_DONE;
    while (count > 0)
        close(files[--count]);
    return intact ? BFC_FETCH_REFUSED : BFC_FETCH_SILENT;
}

enum bfc_fetch_answer bfc_page_fetch_next(struct bfc_page_fetch *fetch,
                                          struct bfc_page_reply *reply,
                                          int files[BFC_LOCAL_FILES]) {
    struct bfc_page_request request = {
        .table = fetch->token.table, .generation = fetch->token.generation, .first = fetch->next};
    if (!bfc_fill_randomly(&request.nonce, sizeof request.nonce))
        return BFC_FETCH_FAILED;
    bfc_page_request_seal(fetch->token.key, &request);
    if (!bfc_local_send(&fetch->exporter, &request, sizeof request, NULL, 0, REPLY_MS))
        return BFC_FETCH_SILENT;
    enum bfc_fetch_answer answer = receive_pages(fetch, &request, reply, files);
    if (answer == BFC_FETCH_DONE)
        fetch->next += reply->count;
    return answer;
}
