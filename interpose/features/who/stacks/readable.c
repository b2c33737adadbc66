/* Which parts of a stack can be read. */
#include "interpose/features/who/stacks/readable.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
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

/* Valgrind, which preloads its own part, reports what we ask the kernel of as errors. */
static bool is_under_valgrind(void) {
    static int known; /* atomic: 0 not yet, else 1 + whether */
    int was = bfc_load_relaxed(&known);
    if (!was) {
        const char *preloaded = getenv("LD_PRELOAD");
        was = 1 + (preloaded && strstr(preloaded, "vgpreload_"));
        bfc_store_relaxed(&known, was);
    }
    return was == 2;
}

/*
 * rt_sigprocmask copies the set before it looks at `how`: EFAULT where it cannot be read, EINVAL
 * where it can, and nothing changes. The technique is that of Abseil's AddressIsReadable.
 */
static bool page_is_readable(uint64_t page) {
    return !is_under_valgrind() && syscall(SYS_rt_sigprocmask, -1, page, NULL, (size_t)8) != 0 &&
           errno == EINVAL;
}

static uint64_t page_end(uint64_t address) {
    return (address & ~(PAGE - 1)) + PAGE;
}

static bool all_readable(uint64_t from, uint64_t to) {
    if (from > to || to - from > MOST_PAGES * PAGE)
        return false;
    for (uint64_t page = from; page < to; page += PAGE)
        if (!page_is_readable(page))
            return false;
    return true;
}

/*
 * Whether the page, which the thread is on, is of its own stack: then all above it is known from
 * now on. Above the first thread's stack the kernel has put 16 random bytes; glibc puts another
 * thread's descriptor at the upper end of its stack. The kernel is not asked who is first: a forked
 * child's only thread is, on another's stack.
 */
static bool extends_own(uint64_t page) {
    uint64_t first = page_end(getauxval(AT_RANDOM));
    if (page < first && first - page < FIRST_STACK) {
        own = (struct bfc_readable){page, first};
        return true;
    }
    if (!own.high)
        own.low = own.high = page_end((uint64_t)pthread_self());
    if (page >= own.low && page < own.high)
        return true;
    if (!all_readable(page, own.low))
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
