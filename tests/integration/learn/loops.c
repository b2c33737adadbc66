/*
 * Loops by command: each line of standard input is a command, each answer one line of JSON with
 * what the job publishes of its pool and its plan.
 *
 *   play LOOP TIMES    plays a loop of its own sizes so often, checking contents
 *   late LOOP TIMES    the same, but each block is freed when its place in the loop has come again
 *                      LATE times
 *   both LOOP TIMES    the same as play in two threads at a time, of which each has its own loop
 *   keep BYTES         one block that stays
 *   fork               a child that ends at once
 *   renew              ends the context, and makes another
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout/plan.h"
#include "tests/integration/interpose/program.h"
#include "tests/integration/interpose/published.h"

enum { BLOCKS = 48, SIZES = 7, LATE = 5 };

static CUcontext context;
static int failures; /* atomic by the lines: threads are joined before it is read */

/* A sequence of sizes and an order of frees of its own for each loop; loop 105 is loop 5 of which
 * every third block is larger. */
static size_t size_of(unsigned loop, unsigned i) {
    if (loop >= 100)
        return size_of(loop - 100, i) + (i % 3 == 0 ? 1 << 20 : 0);
    return (size_t)65536 * (1 + (i * 37 + loop * 11) % (SIZES + 4 * loop)) + 4096 * loop;
}

static void look(CUdeviceptr block, size_t bytes, unsigned mark) {
    unsigned first, last;
    CHECK(cuMemcpyDtoH(&first, block, sizeof first));
    CHECK(cuMemcpyDtoH(&last, block + bytes - sizeof last, sizeof last));
    failures += first != mark || last != mark;
}

static CUdeviceptr get(size_t bytes, unsigned mark) {
    CUdeviceptr block;
    CHECK(cuMemAlloc(&block, bytes));
    CHECK(cuMemcpyHtoD(block, &mark, sizeof mark));
    CHECK(cuMemcpyHtoD(block + bytes - sizeof mark, &mark, sizeof mark));
    return block;
}

/* Every third block is freed at once after the one behind it, the others at the end. */
static void play_once(unsigned loop) {
    CUdeviceptr blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = get(size_of(loop, i), loop * 1000 + i);
        if (i % 3 == 1) {
            look(blocks[i - 1], size_of(loop, i - 1), loop * 1000 + i - 1);
            CHECK(cuMemFree(blocks[i - 1]));
            blocks[i - 1] = 0;
        }
    }
    for (unsigned i = BLOCKS; i-- > 0;)
        if (blocks[i]) {
            look(blocks[i], size_of(loop, i), loop * 1000 + i);
            CHECK(cuMemFree(blocks[i]));
        }
}

static void play(unsigned loop, unsigned times) {
    for (unsigned i = 0; i < times; i++)
        play_once(loop);
}

static void play_late(unsigned loop, unsigned times) {
    static CUdeviceptr kept[LATE][BLOCKS];
    static unsigned turn;
    for (; times > 0; times--, turn++)
        for (unsigned i = 0; i < BLOCKS; i++) {
            CUdeviceptr *block = &kept[turn % LATE][i];
            if (*block)
                CHECK(cuMemFree(*block));
            *block = get(size_of(loop, i), i);
        }
}

static unsigned thread_times;

static void *play_in_thread(void *loop) {
    CHECK(cuCtxSetCurrent(context));
    play((unsigned)(size_t)loop, thread_times);
    return NULL;
}

static void play_both(unsigned loop, unsigned times) {
    pthread_t thread;
    thread_times = times;
    pthread_create(&thread, NULL, play_in_thread, (void *)(size_t)(loop + 1));
    play(loop, times);
    pthread_join(thread, NULL);
}

static void tell(void) {
    static const struct bfc_segment_pool none;
    const struct bfc_segment_pool *section = own_section();
    section = section ? section : &none;
    const struct bfc_segment_plan *plan = &section->plan;
    printf("{\"failures\": %d, \"source\": %llu, \"reserved\": %llu, \"peak_reserved\": %llu, "
           "\"in_use\": %llu, \"reserve_calls\": %llu, \"followed\": %llu, \"missed\": %llu, "
           "\"memory\": %llu, \"bound\": %llu, \"period\": %llu}\n",
           failures, (unsigned long long)plan->source, (unsigned long long)section->stats.reserved,
           (unsigned long long)section->stats.peak_reserved,
           (unsigned long long)section->stats.in_use,
           (unsigned long long)section->stats.reserve_calls, (unsigned long long)plan->followed,
           (unsigned long long)plan->missed, (unsigned long long)plan->memory,
           (unsigned long long)plan->bound, (unsigned long long)plan->period);
    fflush(stdout);
}

static void make_context(void) {
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate(&context, NULL, 0, device));
}

static void renew(void) {
    CHECK(cuCtxDestroy(context));
    make_context();
}

/* Contexts that come and go, with one allocation each. */
static void churn(unsigned long long times) {
    while (times--) {
        get(1 << 20, 1);
        renew();
    }
}

static void fork_child(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

int main(void) {
    char line[128];
    unsigned long long a = 0, b = 0;
    CHECK(cuInit(0));
    make_context();
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "play %llu %llu", &a, &b) == 2)
            play((unsigned)a, (unsigned)b);
        else if (sscanf(line, "late %llu %llu", &a, &b) == 2)
            play_late((unsigned)a, (unsigned)b);
        else if (sscanf(line, "both %llu %llu", &a, &b) == 2)
            play_both((unsigned)a, (unsigned)b);
        else if (sscanf(line, "keep %llu", &a) == 1)
            get(a, 1);
        else if (strcmp(line, "fork\n") == 0)
            fork_child();
        else if (strcmp(line, "renew\n") == 0)
            renew();
        else if (sscanf(line, "churn %llu", &a) == 1)
            churn(a);
        tell();
    }
    return failures ? 4 : 0;
}
