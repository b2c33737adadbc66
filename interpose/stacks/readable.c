/* Which parts of a stack can be read. */
#include "interpose/stacks/readable.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

#define PAGE ((uint64_t)4096) /* or a part of the machine's */
#define MOST_PAGES 256        /* of an own stack, asked about once */

/* The kernel keeps 128 MiB below the first thread's stack, its arguments and environment free for
 * it: what lies in half of that is that stack. */
#define FIRST_STACK ((uint64_t)64 << 20)

/* On other stacks frames are closer together. What lies farther away, such as memory of a device,
 * is not read to find out. */
#define FARTHEST ((uint64_t)1 << 20)

/* The calling thread's own stack, as far as walks have been: all of it is there until the thread
 * ends. high 0: not looked for yet. */
static __thread struct bfc_readable own INITIAL_EXEC;

/* Of the process, known before it has a second thread or changes its environment. */
static uintptr_t first_thread; /* 0: this library was loaded by another thread */
static bool is_under_valgrind; /* which reports what we ask the kernel of as errors */

/* Without a system call: this is in processes that never use CUDA. */
__attribute__((constructor)) static void look_around(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    bool on_first_stack = getauxval(AT_RANDOM) - here < FIRST_STACK;
    first_thread = on_first_stack ? (uintptr_t)pthread_self() : 0;
    is_under_valgrind = preloaded && strstr(preloaded, "vgpreload_");
}

/*
 * rt_sigprocmask copies the set before it looks at `how`: EFAULT where it cannot be read, EINVAL
 * where it can, and nothing changes. The technique is that of Abseil's AddressIsReadable.
 */
static bool page_is_readable(uint64_t page) {
    return !is_under_valgrind && syscall(SYS_rt_sigprocmask, -1, page, NULL, (size_t)8) != 0 &&
           errno == EINVAL;
}

/* Not asked of the kernel: a forked child's only thread is its first, on another's stack. */
static bool is_first_thread(void) {
    return (uintptr_t)pthread_self() == first_thread;
}

/*
 * An address near the upper end of the thread's own stack: glibc puts a thread's descriptor there;
 * that of the first thread is elsewhere, but the kernel has put 16 random bytes above its stack.
 */
static uint64_t upper_end(void) {
    uint64_t near = is_first_thread() ? getauxval(AT_RANDOM) : (uint64_t)pthread_self();
    return (near & ~(PAGE - 1)) + PAGE;
}

static bool all_readable(uint64_t from, uint64_t to) {
    if (from > to || to - from > MOST_PAGES * PAGE)
        return false;
    for (uint64_t page = from; page < to; page += PAGE)
        if (!page_is_readable(page))
            return false;
    return true;
}

/* Whether the page is of the thread's own stack: then all above it is known from now on. */
static bool extends_own(uint64_t page) {
    if (!own.high) {
        own.high = upper_end();
        own.low = own.high;
    }
    if (page >= own.low && page < own.high)
        return true;
    bool first = page < own.high && own.high - page < FIRST_STACK && is_first_thread();
    if (!first && !all_readable(page, own.low))
        return false;
    own.low = page;
    return true;
}

void bfc_readable_begin(struct bfc_readable *readable, uint64_t sp) {
    uint64_t page = sp & ~(PAGE - 1);
    if (LIKELY(sp >= own.low && sp < own.high) || extends_own(page))
        *readable = (struct bfc_readable){page, own.high};
    else
        *readable = (struct bfc_readable){page, page + PAGE};
}

bool bfc_readable_go_on(struct bfc_readable *readable, uint64_t sp) {
    uint64_t page = sp & ~(PAGE - 1);
    bool is_own = bfc_readable_is_own(sp);
    *readable = (struct bfc_readable){page, is_own ? own.high : page + PAGE};
    return is_own || page_is_readable(page);
}

bool bfc_readable_ask(struct bfc_readable *readable, uint64_t address) {
    uint64_t page = address & ~(PAGE - 1);
    if (readable->high == own.high || address < readable->low ||
        address - readable->high > FARTHEST || !page_is_readable(page))
        return false;
    if (page == readable->high)
        readable->high += PAGE;
    else
        *readable = (struct bfc_readable){page, page + PAGE};
    return true;
}

bool bfc_readable_is_own(uint64_t address) {
    return address >= own.low && address < own.high;
}
