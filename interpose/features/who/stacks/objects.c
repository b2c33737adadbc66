/* Walks are counted; a fork waits for those of other threads. */
#include "interpose/features/who/stacks/objects.h"

#include <sched.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/host/c_library.h"

#define FORK ((uint32_t)1 << 16)

static uint32_t under_way; /* atomic: walks, and FORK for each fork */

/* A signal handler that interrupts a walk may fork. At least what this thread has in `under_way`.
 */
static __thread uint32_t own_walks INITIAL_EXEC;

static bool is_over; /* in a child that was forked in a walk of its own thread */
static void (*tell_child)(void);

static void before_fork(void) {
    bfc_fetch_add_seq_cst(&under_way, FORK);
    while (!is_over && bfc_load_seq_cst(&under_way) % FORK > own_walks)
        sched_yield();
}

static void after_fork(void) {
    bfc_fetch_sub_seq_cst(&under_way, FORK);
}

/* Other threads' walks are not in the child. */
static void in_child(void) {
    is_over |= own_walks != 0;
    bfc_store_seq_cst(&under_way, 0);
    tell_child();
}

void bfc_objects_begin(void (*child)(void)) {
    int (*tell)(void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&tell = bfc_c_function("__register_atfork"); /* what pthread_atfork calls */
    tell_child = child;
    if (tell)
        tell(before_fork, after_fork, in_child, NULL);
}

bool bfc_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                       void *context) {
    own_walks++;
    bool visited = bfc_fetch_add_seq_cst(&under_way, 1) < FORK && !is_over;
    if (visited)
        dl_iterate_phdr(visit, context);
    bfc_fetch_sub_seq_cst(&under_way, 1);
    own_walks--;
    return visited;
}
