/*
 * A process beside the program that opens its blocks: the program says what is to be done, one
 * request after another, and the importer answers with a code, or what it read.
 */
#ifndef BFC_TESTS_STRESS_IMPORTER_H
#define BFC_TESTS_STRESS_IMPORTER_H

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/stress/programs/worker.h"

enum { SLOTS = 4, REQUESTS_AT = 100, ANSWERS_AT };
enum asked { OPEN, ADD_TO, READ, CLOSE, LEAVE };

struct request {
    enum asked asked;
    unsigned slot, value;
    size_t bytes;
    CUipcMemHandle handle;
};

struct answer {
    int code;
    uint64_t digest;
};

/* The program's side. What an importer has open is told by slot. */
struct importer {
    pid_t pid; /* 0: none */
    int to, from;
    void *opened[SLOTS]; /* the block, by its address here; NULL: none, or another thread's */
    bool is_open[SLOTS];
    bool is_freed[SLOTS];          /* here, so that nobody can open it any more */
    CUipcMemHandle handles[SLOTS]; /* of the last block in each */
};

static void must_move(bool moved) {
    if (!moved)
        wrong("the other process has ended");
}

static void start_importer(struct importer *importer) {
    int down[2], up[2];
    posix_spawn_file_actions_t actions;
    extern char **environ;
    char *arguments[] = {"random_program", "import", NULL};
    *importer = (struct importer){0};
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
        wrong("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, down[0], REQUESTS_AT);
    posix_spawn_file_actions_adddup2(&actions, up[1], ANSWERS_AT);
    if (posix_spawn(&importer->pid, "/proc/self/exe", &actions, NULL, arguments, environ) != 0)
        wrong("no importer");
    posix_spawn_file_actions_destroy(&actions);
    close(down[0]);
    close(up[1]);
    importer->to = down[1];
    importer->from = up[0];
}

static struct answer ask_importer(struct importer *importer, const struct request *request) {
    struct answer answer = {0};
    must_move(write(importer->to, request, sizeof *request) == (ssize_t)sizeof *request);
    if (request->asked != LEAVE)
        must_move(read(importer->from, &answer, sizeof answer) == (ssize_t)sizeof answer);
    return answer;
}

/* It ends with what it has open, in an orderly way or not. */
static void end_importer(struct importer *importer, bool is_killed) {
    int status;
    struct request leave = {.asked = LEAVE};
    if (is_killed)
        kill(importer->pid, SIGKILL);
    else
        ask_importer(importer, &leave);
    if (waitpid(importer->pid, &status, 0) != importer->pid ||
        (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : !is_killed))
        wrong("the importer failed");
    close(importer->to);
    close(importer->from);
    importer->pid = 0;
}

/* ---- the importer's side ---- */

static int open_in(struct worker *worker, struct request *request) {
    CUdeviceptr at = 0;
    int code = (int)cuIpcOpenMemHandle(&at, request->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (code == 0)
        worker->blocks[request->slot] =
            (struct block){.start = pointer_to(at), .bytes = request->bytes};
    return code;
}

static struct answer obey(struct worker *worker, struct request *request) {
    struct block *block = &worker->blocks[request->slot];
    struct answer answer = {0};
    if (request->asked == OPEN) {
        answer.code = open_in(worker, request);
    } else if (request->asked == CLOSE) {
        answer.code = (int)cuIpcCloseMemHandle(address(block->start));
        if (answer.code == 0)
            block->start = NULL;
    } else if (request->asked == ADD_TO) {
        add_words(worker, block, 0);
        MUST(cuStreamSynchronize(worker->streams[0]));
    } else {
        worker->digest = 1469598103u;
        read_block(worker, block);
        answer.digest = worker->digest;
    }
    return answer;
}

/* Ends when told to; what it has open when the program ends it closes then. */
static int serve(struct worker *worker) {
    struct request request;
    ssize_t told;
    use_device(0);
    MUST(cuCtxGetCurrent(&worker->sides[0].context));
    open_side(worker, 0);
    while ((told = read(REQUESTS_AT, &request, sizeof request)) == (ssize_t)sizeof request &&
           request.asked != LEAVE) {
        worker->state = request.value;
        struct answer answer = obey(worker, &request);
        if (write(ANSWERS_AT, &answer, sizeof answer) != (ssize_t)sizeof answer)
            return 0;
    }
    for (int i = 0; told == 0 && i < SLOTS; i++)
        if (worker->blocks[i].start)
            MUST(cuIpcCloseMemHandle(address(worker->blocks[i].start)));
    return 0;
}

#endif
