/* Answers processes that import pages of this process: sends them file descriptors of the pages. */
#include "interpose/features/share/page_exports.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/open_file.h"
#include "base/shared_folder.h"
#include "interpose/features/share/token_table.h"
#include "interpose/host/background.h"
#include "segment/left_over.h"

enum {
    CALLERS_AT_ONCE = 16,
    TIMEOUT_MS = 2000, /* how long to wait for an importer's next request */
};
/* How long the thread pauses after it was woken and sent no page, so that a process that wakes it
 * again and again does not keep a processor busy. */
#define REST_NS 1000000L

static struct {
    pthread_mutex_t lock;
    pid_t pid; /* the process that started the thread, which a forked child lacks; 0: none */
    struct bfc_wakeup wakeup;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { PATH_SIZE = sizeof BFC_SHARED_FOLDER + BFC_CALLER_NAME };

static void print_path(char path[PATH_SIZE], const char name[BFC_CALLER_NAME]) {
    snprintf(path, PATH_SIZE, BFC_SHARED_FOLDER "/%.*s", BFC_CALLER_NAME - 1, name);
}

/* Answers an importer's request for the block's next pages; returns how many were sent. */
static uint64_t answer_request(const struct bfc_local *importer,
                               const struct bfc_page_request *request) {
    struct bfc_page_reply reply;
    int files[BFC_LOCAL_FILES];
    if (!bfc_page_exports_answer(bfc_driver(), request, &reply, files))
        return 0;
    bool sent =
        bfc_local_send(importer, &reply, sizeof reply, files, (unsigned)reply.count, TIMEOUT_MS);
    for (uint64_t i = 0; i < reply.count; i++)
        close(files[i]);
    return sent ? reply.count : 0;
}

/* Answers the next request of an importer, which must begin with the block's page `first`; returns
 * how many pages were sent. 0 ends the connection. Since pages must be requested in order, and each
 * only once, every connection ends. */
static uint64_t answer_next(const struct bfc_local *importer, uint64_t first) {
    struct bfc_page_request request;
    int files[BFC_LOCAL_FILES];
    unsigned count;
    if (!bfc_local_receive(importer, &request, sizeof request, files, &count, TIMEOUT_MS))
        return 0;
    for (unsigned i = 0; i < count; i++)
        close(files[i]); /* an importer has no reason to send descriptors, so they are only
                            closed */
    return request.first == first ? answer_request(importer, &request) : 0;
}

/* Removes a socket on which no process listens, as one stays when an importer is killed. A socket
 * younger than BFC_SOCKET_SETTLED_S stays, since its importer may be about to listen. */
static void remove_left_over(const char *path) {
    struct stat status;
    if (bfc_file_status_at(AT_FDCWD, path, &status) && status.st_uid == geteuid() &&
        S_ISSOCK(status.st_mode) && time(NULL) - status.st_ctime > BFC_SOCKET_SETTLED_S)
        unlink(path);
}

/* Answers all requests of one importer; returns how many pages were sent. */
static uint64_t answer_caller(const char *name) {
    char path[PATH_SIZE];
    struct bfc_local importer;
    uint64_t done = 0;
    print_path(path, name);
    if (!bfc_local_call(&importer, path)) {
        if (errno == ECONNREFUSED)
            remove_left_over(path);
        return 0;
    }
    for (uint64_t more; (more = answer_next(&importer, done)) > 0;)
        done += more;
    bfc_local_end(&importer);
    return done;
}

/* Lists the sockets of waiting importers. The folder's descriptor is closed before the importers
 * are answered, since answering them may take long. */
static unsigned find_callers(char names[CALLERS_AT_ONCE][BFC_CALLER_NAME]) {
    char prefix[BFC_CALLER_NAME];
    unsigned count = 0;
    const struct dirent *entry;
    DIR *folder = bfc_open_folder_at(AT_FDCWD, BFC_SHARED_FOLDER);
    bfc_page_caller_prefix(prefix, &server.wakeup.table);
    while (folder && count < CALLERS_AT_ONCE && (entry = readdir(folder)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            strlen(entry->d_name) < BFC_CALLER_NAME)
            strcpy(names[count++], entry->d_name);
    if (folder)
        closedir(folder);
    return count;
}

/* Answers all importers that wait for pages. False: no page was sent. */
static bool answer_callers(void) {
    char names[CALLERS_AT_ONCE][BFC_CALLER_NAME];
    unsigned count = find_callers(names);
    uint64_t sent = 0;
    for (unsigned i = 0; i < count; i++)
        sent += answer_caller(names[i]);
    return sent > 0;
}

static void *serve_importers(void *unused) {
    uint32_t word;
    (void)unused;
    bfc_background_enter();
    while (bfc_wakeup_read(&server.wakeup, &word)) {
        if (!answer_callers())
            bfc_nap(REST_NS);
        if (!bfc_wakeup_await(&server.wakeup, word))
            break;
    }
    return NULL;
}

bool bfc_page_server_start(void) {
    int cancel = bfc_cancel_disable();
    pthread_mutex_lock(&server.lock);
    bool runs = server.pid == getpid();
    if (!runs && bfc_wakeup_open(&server.wakeup) && bfc_background_start(serve_importers, NULL)) {
        server.pid = getpid();
        runs = true;
    }
    pthread_mutex_unlock(&server.lock);
    bfc_cancel_restore(cancel);
    return runs;
}

__attribute__((destructor)) static void remove_callers(void) {
    char names[CALLERS_AT_ONCE][BFC_CALLER_NAME], path[PATH_SIZE];
    if (server.pid == 0 || server.pid != getpid())
        return;
    unsigned count = find_callers(names);
    for (unsigned i = 0; i < count; i++) {
        print_path(path, names[i]);
        unlink(path);
    }
}
