/*
 * Races around the end, and the return, of the state of one stream (docs/internals/safety.md),
 * each at its worst moment: the stand-in GPU holds up a call there (SIM_LATENCY), or the library's
 * own call of membarrier, which this program answers, waits for the other threads. Without WAY,
 * what it is like where the system has no such call.
 *
 * usage: only [WAY]
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tests/conformance/helper.h"

enum { OLD_VALUE = 1, NEW_VALUE = 2, LONG_MS = 500, PAIRS = 4200 };
static const size_t bytes = MIB, large = 3 * MIB;

static CUstream only, other;
static void *block; /* of a size of its own */

/* ---- work ---- */

static void set(void *where, size_t size, int value, CUstream stream) {
    MUST(cuMemsetD8Async(address(where), (unsigned char)value, size, stream));
}

static void use(CUstream stream, int rounds) {
    for (int i = 0; i < rounds; i++) {
        void *used = new_block(bytes);
        set(used, bytes, OLD_VALUE, stream);
        MUST(release(used));
    }
}

static void await_call(const char *name) {
    while (counted(name) == 0)
        usleep(100);
}

static void *unseen_call(const char *name) {
    void *(*private_entry)(const char *);
    *(void **)&private_entry = dlsym(RTLD_DEFAULT, "sim_private_entry");
    return private_entry(name);
}

static void tell_bytes(void *next) {
    MUST(synchronize());
    tell("the next owner's bytes", holds(next, large, NEW_VALUE));
}

/* A block that is freed and handed out again while the only stream still fills it. */
static void *hand_out_early(void) {
    use(only, 2);
    block = new_block(large);
    slow_fill(only, block, large, OLD_VALUE, LONG_MS);
    MUST(release(block));
    return new_block(large);
}

/* ---- the only stream is destroyed while its state ends ---- */

static void *set_in_other(void *next) {
    use_device(0);
    set(next, large, NEW_VALUE, other);
    return NULL;
}

static void destroy(void) {
    pthread_t thread;
    void *next = hand_out_early();
    pthread_create(&thread, NULL, set_in_other, next);
    await_call("cuCtxRecordEvent");
    MUST(cuStreamDestroy(only));
    tell("other streams wait for it by then", counted("cuCtxWaitEvent") != 0);
    pthread_join(thread, NULL);
    tell_bytes(next);
}

/* ---- two calls at once that may submit work unseen ---- */

static void *look_up_unknown(void *unused) {
    void *entry;
    MUST(cuGetProcAddress_v2("cuStreamBeginUnheardOfCapture", &entry, 99000, 0, NULL));
    return unused;
}

static void *look_up_first(void *unused) {
    use_device(0);
    return look_up_unknown(unused);
}

static void hide_twice(void) {
    CUresult (*set_unseen)(CUdeviceptr, unsigned char, size_t, CUstream);
    pthread_t thread;
    *(void **)&set_unseen = unseen_call("cuMemsetD8Async");
    void *next = hand_out_early();
    pthread_create(&thread, NULL, look_up_first, NULL);
    await_call("cuCtxRecordEvent");
    look_up_unknown(NULL);
    MUST(set_unseen(address(next), NEW_VALUE, large, other));
    pthread_join(thread, NULL);
    tell_bytes(next);
}

/* ---- the only stream is destroyed while it is checked ---- */

/* Enough frees for a check. */
static void *free_only(void *unused) {
    use_device(0);
    for (int i = 0; i < PAIRS && counted("cuEventRecord") == 0; i++)
        MUST(release(new_block(bytes)));
    return unused;
}

static void check_late(void) {
    pthread_t thread;
    use(only, 2);
    pthread_create(&thread, NULL, free_only, NULL);
    await_call("cuEventRecord");
    MUST(cuStreamDestroy(only));
    pthread_join(thread, NULL);
    printf("calls with a destroyed stream: %llu\n", counted("stale"));
}

/* ---- a trial while another thread submits, or waits ---- */

/* What the next trial does between the change of the word and the count of submissions. */
static void (*_Atomic in_trial)(void);
static atomic_bool lacks_barriers; /* the system is one without them */
static atomic_bool launched;
static pthread_t waiter;

/* In place of the C library's, for the library. */
__attribute__((visibility("default"))) long syscall(long number, ...) {
    long (*next)(long, ...), words[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_membarrier && lacks_barriers) {
        errno = ENOSYS;
        return -1;
    }
    if (number == SYS_membarrier && words[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        void (*act)(void) = atomic_exchange(&in_trial, NULL);
        if (act)
            act();
    }
    *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

static void *launch_late(void *unused) {
    use_device(0);
    slow_fill(other, block, large, OLD_VALUE, LONG_MS);
    launched = true;
    return unused;
}

static void await_launch(void) {
    while (!launched)
        usleep(100);
}

/* There are many streams; one thread is in the call that fills the block, which is held up, while
 * this one frees until a trial begins, which then does `act`. */
static void try_while_launching(pthread_t *thread, void (*act)(void)) {
    block = new_block(large);
    kernel("slow_fill");
    use(only, 1);
    use(other, 1);
    pthread_create(thread, NULL, launch_late, NULL);
    await_call("cuLaunchKernel");
    in_trial = act;
    for (int i = 0; i < PAIRS && in_trial; i++)
        use(only, 1);
}

static void reuse_block(void) {
    MUST(release(block));
    void *next = new_block(large);
    set(next, large, NEW_VALUE, only);
    tell_bytes(next);
}

static void *wait_for_all(void *unused) {
    use_device(0);
    MUST(cuCtxSynchronize());
    return unused;
}

/* The wait may begin, before the launch goes on, unless it waits for the trial. */
static void wait_meanwhile(void) {
    pthread_create(&waiter, NULL, wait_for_all, NULL);
    for (int ms = 0; ms < 20 && counted("cuCtxSynchronize") == 0; ms++)
        usleep(1000);
    await_launch();
}

static void wait_within(void) {
    pthread_t launcher;
    try_while_launching(&launcher, wait_meanwhile);
    pthread_join(waiter, NULL);
    reuse_block();
    pthread_join(launcher, NULL);
}

static void *free_second(void *freed) {
    use_device(0);
    MUST(release(freed));
    return NULL;
}

/* The next two frees find an unseen capture, so that their fences are not recorded; and the first
 * one's number cannot be drawn again, since the second has drawn a later one meanwhile. */
static void prove_void(void) {
    CUresult (*begin)(CUstream), (*end)(CUstream, CUgraph *); /* as in CUDA 10.0 */
    pthread_t launcher, second;
    CUgraph graph;
    *(void **)&begin = unseen_call("cuStreamBeginCapture");
    *(void **)&end = unseen_call("cuStreamEndCapture");
    CUstream captured = new_stream();
    try_while_launching(&launcher, await_launch);
    void *freed[2] = {new_block(bytes), new_block(bytes)};
    MUST(begin(captured));
    pthread_create(&second, NULL, free_second, freed[1]);
    MUST(release(freed[0]));
    pthread_join(second, NULL);
    end(captured, &graph);
    use(only, 32);
    reuse_block();
    pthread_join(launcher, NULL);
}

/* Without barriers it is never one stream again. The program's errno is its own. */
static void lack_barriers(void) {
    lacks_barriers = true;
    use(only, 1);
    use(other, 1);
    errno = 0;
    use(only, 200);
    tell("errno is untouched", errno == 0);
    unsigned long long before = counted("event_records");
    use(only, 200);
    tell("all frees need a fence", counted("event_records") - before == 200);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*play)(void);
    } ways[] = {{"destroyed", destroy},
                {"hidden", hide_twice},
                {"checked", check_late},
                {"waited", wait_within},
                {"proved", prove_void}};
    use_device(0);
    only = new_stream();
    other = new_stream();
    if (count == 1)
        lack_barriers();
    for (size_t i = 0; count > 1 && i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(arguments[1], ways[i].name) == 0)
            ways[i].play();
    return 0;
}
