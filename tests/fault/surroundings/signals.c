/* Every signal, during every kind of call: handled, ignored, held back, and by default. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

enum { ENOUGH = 300 };

static volatile sig_atomic_t handled;
static int sent;
static bool over; /* both atomic */
static pthread_t worker;

static void count_it(int number) {
    (void)number;
    handled++;
}

/* Not those that nobody can handle, those of the C library's own, and those of faults. */
static bool can_be_sent(int number) {
    return number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN);
}

static void for_all(void (*disposition)(int), int flags) {
    struct sigaction action = {.sa_handler = disposition, .sa_flags = flags};
    if (flags & SA_ONSTACK) /* one handler at a time: they would not all have room */
        sigfillset(&action.sa_mask);
    for (int i = 1; i <= SIGRTMAX; i++)
        if (can_be_sent(i))
            must(sigaction(i, &action, NULL) == 0, "sigaction");
}

/* To the thread that works, one after another as fast as they are taken. */
static void *send_all(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        for (int i = 1; i <= SIGRTMAX && !__atomic_load_n(&over, __ATOMIC_RELAXED); i++)
            if (can_be_sent(i)) {
                pthread_kill(worker, i);
                __atomic_add_fetch(&sent, 1, __ATOMIC_RELAXED);
                nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
            }
    return unused;
}

static void run_out_silently(void) {
    CUdeviceptr block;
    must(cuMemAlloc(&block, (size_t)1 << 30) == CUDA_ERROR_OUT_OF_MEMORY, "out of memory");
}

/* From the first call on, until every signal came some times. */
static void work_under_signals(void) {
    pthread_t sender;
    worker = pthread_self();
    must(pthread_create(&sender, NULL, send_all, NULL) == 0, "a thread");
    begin();
    run_out();
    while (__atomic_load_n(&sent, __ATOMIC_RELAXED) < ENOUGH) {
        use_memory();
        run_out_silently();
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(sender, NULL);
}

static void run_handled(void) {
    for_all(count_it, 0);
    work_under_signals();
    must(handled > 0, "signals came");
}

static void run_restarted(void) {
    for_all(count_it, SA_RESTART | SA_NODEFER);
    work_under_signals();
    must(handled > 0, "signals came");
}

static void run_alternate(void) {
    stack_t stack = {.ss_size = 65536};
    stack.ss_sp = malloc(stack.ss_size);
    must(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    for_all(count_it, SA_ONSTACK);
    work_under_signals();
    must(handled > 0, "signals came");
}

static void run_recorded(void) {
    static char path[4096];
    strcpy(path, getenv("FOLDER"));
    setenv("BFC_RECORD", strcat(path, "/trace"), 1);
    for_all(count_it, 0);
    work_under_signals();
}

static void run_ignored(void) {
    for_all(SIG_IGN, 0);
    work_under_signals();
}

static void run_held_back(void) {
    sigset_t all, pending, mask;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    begin();
    for (int i = 1; i <= SIGRTMAX; i++)
        if (can_be_sent(i) && i != SIGCONT) /* it and the stops take each other back */
            raise(i);
    use_memory();
    run_out();
    sigpending(&pending);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i <= SIGRTMAX; i++)
        if (can_be_sent(i) && i != SIGCONT)
            must(sigismember(&pending, i) && sigismember(&mask, i), "a signal is held back");
}

/* A fast timer alone, all the time: what is cut short by it goes on. */
static void run_timer(void) {
    const struct itimerval fast = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = count_it};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &fast, NULL);
    work();
    setitimer(ITIMER_REAL, &none, NULL);
}

/* The program's handlers run in its own threads: ours take no signal. */
static volatile pid_t taken_by;

static void note_thread(int number) {
    (void)number;
    taken_by = gettid();
}

static void run_process_wide(void) {
    sigset_t all;
    for_all(note_thread, 0);
    begin();
    use_memory();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 1; i <= SIGRTMAX; i++)
        if (can_be_sent(i))
            kill(getpid(), i);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    must(taken_by == 0, "nobody takes a signal that the program holds back");
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    must(taken_by == gettid(), "the program's thread takes it");
}

/* By default: each ends, stops or passes by as natively, in the middle of the work. */
static int deadly;

static void work_until_killed(void) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(deadly, &action, NULL);
    begin();
    use_memory();
    kill(getpid(), deadly);
    use_memory();
}

static void run_default(void) {
    for (deadly = 1; deadly <= SIGRTMAX; deadly++) {
        int status = 0;
        if (!can_be_sent(deadly))
            continue;
        pid_t child = fork();
        if (child == 0) {
            work_until_killed();
            _exit(0);
        }
        must(waitpid(child, &status, WUNTRACED) == child, "a child");
        if (WIFSTOPPED(status)) {
            report("signal %d stops", deadly);
            kill(child, SIGCONT);
            waitpid(child, &status, 0);
        }
        report("signal %d, %s %d", deadly, WIFSIGNALED(status) ? "killed by" : "ends",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* Out of a handler by a jump, while no call is under way; and masks are as they were. */
static sigjmp_buf back;

static void jump(int number) {
    siglongjmp(back, number);
}

static void run_jumps(void) {
    sigset_t mask;
    for_all(jump, 0);
    begin();
    for (int i = 1; i <= SIGRTMAX; i++) {
        if (!can_be_sent(i))
            continue;
        use_memory();
        if (sigsetjmp(back, 1) == 0)
            raise(i);
        use_memory();
    }
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i <= SIGRTMAX; i++)
        must(!sigismember(&mask, i), "no signal is held back");
}

static const struct scene scenes[] = {
    {"handled", run_handled},   {"restarted", run_restarted},       {"alternate", run_alternate},
    {"recorded", run_recorded}, {"ignored", run_ignored},           {"held-back", run_held_back},
    {"timer", run_timer},       {"process-wide", run_process_wide}, {"default", run_default},
    {"jumps", run_jumps},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}
