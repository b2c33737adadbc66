/*
 * A signal handler that submits work, in a thread that submits work: whatever the handler
 * interrupts, no submission is lost from the thread's count.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "interpose/table/counter.h"

__thread struct bfc_submitter bfc_submitter INITIAL_EXEC;
struct bfc_only bfc_only = {BFC_STREAMS_MANY};
static const struct bfc_counter counting;
const struct bfc_counter *bfc_counter = &counting;

/* A round ends after so many submissions, or signals: each costs microseconds on some machines. */
enum { ROUNDS = 20, SUBMISSIONS = 100000, SIGNALS = 2000 };
static const CUstream stream = CU_STREAM_LEGACY;
static volatile unsigned handled;

static void submit(void) {
    uint64_t end;
    (void)bfc_submission_begin(stream, false, &end);
    bfc_submission_end(end);
}

static void handle(int number) {
    (void)number;
    submit();
    handled++;
}

/* Returns how many submissions it made. In between, it makes calls that only keep memory awake,
 * which do not count. */
static uint64_t submit_many(void) {
    unsigned before = handled;
    uint64_t made;
    for (made = 0; made < SUBMISSIONS && handled - before < SIGNALS; made++) {
        uint64_t end;
        submit();
        (void)bfc_stay_awake(&end);
        bfc_submission_end(end);
    }
    return made;
}

static void expect(const char *when, uint64_t number) {
    if (bfc_submitter.count / BFC_SUBMISSION == number && !(bfc_submitter.count % BFC_SUBMISSION))
        return;
    fprintf(stderr, "%s: %llu submissions are counted, %llu were made\n", when,
            (unsigned long long)(bfc_submitter.count / BFC_SUBMISSION), (unsigned long long)number);
    _Exit(1);
}

int main(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct itimerspec often = {{0, 7000}, {0, 7000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    uint64_t made = 1;
    bfc_submitter.count = BFC_SUBMISSION;
    bfc_submitter.last = stream;
    if (signal(SIGRTMIN, handle) == SIG_ERR || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        timer_settime(timer, 0, &often, NULL);
        made += submit_many();
        timer_settime(timer, 0, &never, NULL);
        expect("after a round", made + handled);
    }
    printf("%u signals were handled\n", handled);
    return handled == 0;
}
