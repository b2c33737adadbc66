/*
 * Allocates where call stacks are hard to walk, or lead astray on purpose. The scene is its
 * argument (a second one: whether the process begins in a container that refuses what walks need);
 * a walk that reads what is not there, waits or never ends shows in how it ends. Holds what it has
 * allocated until the end of its standard input.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/integration/who/site.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static CUcontext shared;

static void must(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

void site_attacked(void);

SITE void site_attacked(void) {
    CUdeviceptr pointer;
    must(cuMemAlloc(&pointer, KIB) == CUDA_SUCCESS, "cuMemAlloc");
    must(cuMemFree(pointer) == CUDA_SUCCESS, "cuMemFree");
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void in_thread(void *(*run)(void *), const pthread_attr_t *attributes) {
    pthread_t thread;
    errno = pthread_create(&thread, attributes, run, NULL);
    must(errno == 0, "pthread_create");
    pthread_join(thread, NULL);
}

static char *map(size_t size) {
    char *space = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(space != MAP_FAILED, "mmap");
    return space;
}

/* ---- code that no table describes ---- */

#ifdef __x86_64__
#define CODE_BYTES 32u

/* At `at`: a function that sets the frame pointer to its argument and calls site_attacked. */
static void generate(char *at) {
    const unsigned char code[CODE_BYTES] = {
        0x55,                                  /* push %rbp */
        0x48, 0x89, 0xfd,                      /* mov %rdi, %rbp */
        0x48, 0xb8, 0,    0, 0, 0, 0, 0, 0, 0, /* movabs $site_attacked, %rax */
        0xff, 0xd0,                            /* call *%rax */
        0x5d, 0xc3,                            /* pop %rbp; ret */
    };
    void (*site)(void) = site_attacked;
    memcpy(at, code, sizeof code);
    memcpy(at + 6, &site, sizeof site);
}

static void run_generated(char *at, const void *frame_pointer) {
    void (*run)(const void *);
    *(void **)&run = at;
    run(frame_pointer);
}

static void *restorer; /* what handlers return to */

static void note_restorer(int number) {
    (void)number;
    restorer = __builtin_return_address(0);
}

/* A frame of a signal handler that never was: it says that the signal came at `stack`. */
static void forge(uint64_t *frame, uint64_t stack, uint64_t code) {
    struct {
        uint64_t pointer, code;
        ucontext_t context;
    } *forged = (void *)frame;
    memset(forged, 0x5a, sizeof *forged);
    forged->code = (uint64_t)restorer;
    forged->context.uc_mcontext.gregs[REG_RSP] = (greg_t)stack;
    forged->context.uc_mcontext.gregs[REG_RIP] = (greg_t)code;
    forged->context.uc_mcontext.gregs[REG_RBP] = (greg_t)stack;
}

static void lead_astray(char *code) {
    uint64_t frame[256], *here = frame;
    char *hole = map(64 * KIB);
    munmap(hole, 64 * KIB);
    uint64_t at = (uint64_t)frame;
    uint64_t wrong[] = {
        0,  1,      (uint64_t)hole, UINT64_MAX,     UINT64_C(1) << 63, (uint64_t)code,
        at, at + 4, at + 4 * MIB,   at + 900 * KIB, at + 200 * MIB};
    frame[0] = (uint64_t)here; /* and its caller is itself */
    frame[1] = (uint64_t)code + 16;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        run_generated(code, (void *)wrong[i]);
        forge(frame, wrong[i], (uint64_t)code + 16);
        run_generated(code, frame);
        forge(frame, (uint64_t)frame, (uint64_t)restorer);
        run_generated(code, frame);
        frame[0] = wrong[i];
        frame[1] = (uint64_t)code + 16;
        run_generated(code, frame);
        frame[0] = (uint64_t)here;
        run_generated(code, frame);
    }
    forge(frame, (uint64_t)frame - 32 * MIB, (uint64_t)code + 16); /* below the first stack */
    run_generated(code, frame);
}

static char *code_astray;

static void astray_here(void) {
    lead_astray(code_astray);
}

static void *astray_in_thread(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared);
    lead_astray(code_astray);
    return NULL;
}

static ucontext_t outside, inside;

static void on_stack(char *space, size_t size, void (*run)(void)) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = space;
    inside.uc_stack.ss_size = size;
    inside.uc_link = &outside;
    makecontext(&inside, run, 0);
    swapcontext(&outside, &inside);
}

static void *astray_once(void *unused) {
    cuCtxSetCurrent(shared);
    run_generated(code_astray, unused);
    return NULL;
}

/* On the first thread's stack, a thread's, and one that ends where nothing is mapped. */
static void astray(void) {
    code_astray = map(4 * KIB);
    generate(code_astray);
    signal(SIGUSR1, note_restorer);
    raise(SIGUSR1);
    astray_here();
    in_thread(astray_in_thread, NULL);
    char *space = map(512 * KIB);
    munmap(space + 256 * KIB, 256 * KIB);
    on_stack(space, 256 * KIB, astray_here);
    munmap(space, 256 * KIB);
    astray_here();
}

/* ---- pages of a thread's own stack that cannot be read ---- */

#define PAGE ((size_t)4096)

static void *unreadable;

static void call_with_unreadable_pointer(void) {
    for (int i = 0; i < 3; i++)
        run_generated(code_astray, unreadable);
}

static char *first_page(char *space) {
    return space + (PAGE - (uintptr_t)space % PAGE);
}

/* A coroutine's stack inside the thread's own, and a page above it that nobody may read. */
static void *run_coroutine_inside(void *unused) {
    char space[512 * KIB];
    char *page = first_page(space + 256 * KIB);
    (void)unused;
    cuCtxSetCurrent(shared);
    site_attacked(); /* the thread's own stack is known from here on */
    must(mprotect(page, PAGE, PROT_NONE) == 0, "mprotect");
    unreadable = page + 64;
    on_stack(space, (size_t)(page - space), call_with_unreadable_pointer);
    must(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    return NULL;
}

static void coroutine_inside(void) {
    code_astray = map(4 * KIB);
    generate(code_astray);
    run_coroutine_inside(NULL);
    in_thread(run_coroutine_inside, NULL);
}

static char *thread_space;

/* What lies above was readable when the stack was walked first. */
static void *protect_above(void *unused) {
    char *here = (char *)&unused, much[64 * KIB];
    __asm__ volatile("" : : "r"(much) : "memory");
    cuCtxSetCurrent(shared);
    site_attacked();
    char *page = first_page(here);
    unreadable = page + 64;
    must(mprotect(page, PAGE, PROT_NONE) == 0, "mprotect");
    call_with_unreadable_pointer();
    must(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    return NULL;
}

/* With room above the pages that its caller is on. */
static void *leave_room(void *unused) {
    char room[32 * KIB];
    __asm__ volatile("" : : "r"(room) : "memory");
    protect_above(unused);
    __asm__ volatile("" : : "r"(room) : "memory");
    return NULL;
}

static void protected_later(void) {
    pthread_attr_t attributes;
    code_astray = map(4 * KIB);
    generate(code_astray);
    pthread_attr_init(&attributes);
    thread_space = map(256 * KIB);
    pthread_attr_setstack(&attributes, thread_space, 256 * KIB);
    in_thread(leave_room, &attributes);
}

static int flipped_enough; /* atomic */

static void *flip(void *page) {
    while (!__atomic_load_n(&flipped_enough, __ATOMIC_RELAXED)) {
        mprotect(page, PAGE, PROT_NONE);
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    }
    return NULL;
}

/* A page that can be read when the kernel is asked, and not a moment later. */
static void flipping(void) {
    pthread_t flipper;
    char *space = map(64 * KIB);
    code_astray = map(4 * KIB);
    generate(code_astray);
    unreadable = space + 32 * KIB + 64;
    pthread_create(&flipper, NULL, flip, space + 32 * KIB);
    for (int i = 0; i < 20000; i++)
        on_stack(space, 32 * KIB, call_with_unreadable_pointer);
    __atomic_store_n(&flipped_enough, 1, __ATOMIC_RELAXED);
    pthread_join(flipper, NULL);
}

/* More places than there is room for. */
static void many(void) {
    enum { PLACES = 100000 };
    char *code = map(PLACES * CODE_BYTES);
    for (size_t i = 0; i < PLACES; i++) {
        generate(code + i * CODE_BYTES);
        run_generated(code + i * CODE_BYTES, NULL);
    }
}

/* ---- forks, while other threads walk through code that was never seen ---- */

static int forked_enough; /* atomic: or how often */

static void *walk_anew(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared);
    enum { PLACES = 4096 };
    char *code = map(PLACES * CODE_BYTES);
    for (size_t i = 0; !__atomic_load_n(&forked_enough, __ATOMIC_RELAXED); i++) {
        char *place = code + i % PLACES * CODE_BYTES;
        generate(place);
        run_generated(place, NULL);
    }
    return NULL;
}

static int visit_one(struct dl_phdr_info *info, size_t size, void *context) {
    (void)info, (void)size, (void)context;
    return 1;
}

/* Children that need the loader's lock, which a walk may have had. */
static void forks(void) {
    pthread_t walkers[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&walkers[i], NULL, walk_anew, NULL);
    for (int i = 0; i < 150; i++) {
        pid_t child = fork();
        if (child == 0) {
            dl_iterate_phdr(visit_one, NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    __atomic_store_n(&forked_enough, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(walkers[i], NULL);
}

static int visit_and_allocate(struct dl_phdr_info *info, size_t size, void *context) {
    (void)info, (void)size, (void)context;
    site_attacked();
    return 1;
}

/* Allocates while it holds the loader's lock, as another thread's walks want it. */
static void under_lock(void) {
    pthread_t walker;
    pthread_create(&walker, NULL, walk_anew, NULL);
    for (int i = 0; i < 20000; i++)
        dl_iterate_phdr(visit_and_allocate, NULL);
    __atomic_store_n(&forked_enough, 1, __ATOMIC_RELAXED);
    pthread_join(walker, NULL);
}

static int visit_and_fork(struct dl_phdr_info *info, size_t size, void *context) {
    (void)info, (void)size, (void)context;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 1;
}

/* Forks while it holds the loader's lock, as another thread's walks want it. */
static void fork_under_lock(void) {
    pthread_t walker;
    pthread_create(&walker, NULL, walk_anew, NULL);
    for (int i = 0; i < 200; i++)
        dl_iterate_phdr(visit_and_fork, NULL);
    __atomic_store_n(&forked_enough, 1, __ATOMIC_RELAXED);
    pthread_join(walker, NULL);
}

static int visit_and_wait(struct dl_phdr_info *info, size_t size, void *context) {
    (void)info, (void)size, (void)context;
    generate(code_astray);
    in_thread(astray_once, NULL);
    return 1;
}

/* Holds the loader's lock until another thread has allocated, from code that is new. */
static void wait_under_lock(void) {
    code_astray = map(4 * KIB);
    dl_iterate_phdr(visit_and_wait, NULL);
}

static void fork_and_go_on(int number) {
    int kept = errno;
    (void)number;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    __atomic_fetch_add(&forked_enough, 1, __ATOMIC_RELAXED);
    errno = kept;
}

/* A handler that forks may interrupt a walk. */
static void forking_handler(void) {
    struct sigaction action = {.sa_handler = fork_and_go_on, .sa_flags = SA_RESTART};
    struct itimerspec often = {{0, 5000000}, {0, 5000000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigaction(SIGALRM, &action, NULL);
    must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
    char *code = map(MIB);
    timer_settime(timer, 0, &often, NULL);
    for (size_t i = 0; __atomic_load_n(&forked_enough, __ATOMIC_RELAXED) < 50; i++) {
        char *place = code + i * CODE_BYTES % MIB;
        generate(place);
        run_generated(place, NULL);
    }
    timer_settime(timer, 0, &never, NULL);
}
#else
static void astray(void) {
    site_attacked();
}
#define coroutine_inside astray
#define protected_later astray
#define flipping astray
#define fork_under_lock astray
#define wait_under_lock astray
#define many astray
#define forks astray
#define under_lock astray
#define forking_handler astray
#endif

/* ---- stacks ---- */

void dig(int depth);

SITE void dig(int depth) {
    if (depth == 0)
        site_attacked();
    else
        dig(depth - 1);
    __asm__ volatile("" ::: "memory");
}

static void *dig_in_thread(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared);
    for (int i = 0; i < 100; i++)
        dig(100000);
    return NULL;
}

static void deeper(void) {
    dig_in_thread(NULL);
    in_thread(dig_in_thread, NULL);
}

static void *use_much(void *unused) {
    (void)unused;
    char much[300 * MIB];
    much[0] = 1;
    __asm__ volatile("" : : "r"(much) : "memory");
    return dig_in_thread(NULL);
}

/* As sanitizers have, and one of the program's own making. */
static void huge(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1024 * MIB);
    in_thread(use_much, &attributes);
    char *space = map(64 * MIB);
    pthread_attr_setstack(&attributes, space, 64 * MIB);
    in_thread(dig_in_thread, &attributes);
    munmap(space, 64 * MIB);
}

static int run_clone(void *unused) {
    (void)unused;
    site_attacked();
    return 0;
}

/* A thread that the C library knows nothing of, with its parent's thread-local variables. */
static void cloned(void) {
    enum { STACK = 16384 };
    char *space = map(STACK);
    int tid = 1;
    must(clone(run_clone, space + STACK,
               CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                   CLONE_CHILD_CLEARTID,
               NULL, NULL, NULL, &tid) > 0,
         "clone");
    while (__atomic_load_n(&tid, __ATOMIC_ACQUIRE) == 1)
        sched_yield();
    munmap(space, STACK);
    site_attacked();
}

static void *vfork_in_thread(void *unused) {
    (void)unused;
    cuCtxSetCurrent(shared);
    for (int i = 0; i < 50; i++) {
        pid_t child = vfork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
        site_attacked();
    }
    return NULL;
}

static void vforks(void) {
    vfork_in_thread(NULL);
    in_thread(vfork_in_thread, NULL);
}

/* A library that comes and goes, and others at its addresses. */
static void comings_and_goings(void) {
    for (int i = 0; i < 60; i++) {
        void *library = dlopen(getenv("PLUGIN"), RTLD_NOW);
        void (*plug)(void);
        *(void **)&plug = library ? dlsym(library, "site_plugin") : NULL;
        must(plug != NULL, "dlopen");
        plug();
        dlclose(library);
        void *other = i % 2 ? map((size_t)(i % 7 + 1) * 16 * KIB) : NULL;
        if (other && i % 4 == 1)
            munmap(other, (size_t)(i % 7 + 1) * 16 * KIB);
    }
}

/* ---- what the kernel may be asked ---- */

#define RULE(action) BPF_STMT(BPF_RET | BPF_K, action)

static void filter_with(struct sock_filter *rules, size_t count) {
    struct sock_fprog program = {.len = (unsigned short)count, .filter = rules};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
}

/* As a program's own sandbox does: it kills for calls that the program has no need of. */
static void filter_calls(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        RULE(SECCOMP_RET_KILL_PROCESS),
        RULE(SECCOMP_RET_ALLOW),
    };
    filter_with(rules, sizeof rules / sizeof rules[0]);
}

/* As old containers' filters do. */
static void refuse_copies(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        RULE(SECCOMP_RET_ERRNO | EPERM),
        RULE(SECCOMP_RET_ALLOW),
    };
    filter_with(rules, sizeof rules / sizeof rules[0]);
}

static void filtered(void) {
    filter_calls();
    dig(1000);
#ifdef __x86_64__
    char *space = map(64 * KIB);
    on_stack(space, 64 * KIB, site_attacked);
#endif
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"astray", astray},
    {"coroutine_inside", coroutine_inside},
    {"protected_later", protected_later},
    {"flipping", flipping},
    {"fork_under_lock", fork_under_lock},
    {"wait_under_lock", wait_under_lock},
    {"many", many},
    {"forks", forks},
    {"under_lock", under_lock},
    {"forking_handler", forking_handler},
    {"deeper", deeper},
    {"huge", huge},
    {"cloned", cloned},
    {"vforks", vforks},
    {"comings_and_goings", comings_and_goings},
    {"filtered", filtered},
};

int main(int count, char **arguments) {
    CUdevice device;
    CUdeviceptr kept;
    if (count > 2 && strcmp(arguments[2], "in-container") == 0)
        refuse_copies();
    must(!cuInit(0) && !cuDeviceGet(&device, 0) && !cuDevicePrimaryCtxRetain(&shared, device) &&
             !cuCtxSetCurrent(shared) && !cuMemAlloc(&kept, MIB),
         "CUDA");
    for (size_t i = 0; count > 1 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(scenes[i].name, arguments[1]) == 0)
            scenes[i].run();
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
