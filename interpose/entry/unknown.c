/* Wrappers of driver calls that begin captures and for which this library has no hook. */
#include "interpose/entry/unknown.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "interpose/config/process.h"
#include "interpose/context/capture.h"
#include "interpose/table/counter.h"

/* How many machine words a wrapper passes on as arguments: more than any driver call takes. The
 * words beyond the caller's arguments are whatever is in registers and on the stack. */
#define WORDS(X) X(a), X(b), X(c), X(d), X(e), X(f), X(g), X(h), X(i), X(j), X(k), X(l)
#define DECLARE(word) uintptr_t word
#define PASS(word) word

typedef CUresult entry(WORDS(DECLARE));

/* Wrapper i passes its calls on to places[i]; NULL: the wrapper is free. Wrappers are taken in
 * order, under `lock`, and never given back. */
enum { PLACES = 8 };
static entry *places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note_result(CUresult result) {
    if (bfc_capture_began_unknown(result))
        bfc_log(BFC_LOG_WARN, "a capture was begun by a driver call that is newer than this "
                              "library: from now on the driver itself serves allocations");
}

#define WRAPPER(place)                                                                             \
    static CUresult wrapper_##place(WORDS(DECLARE)) {                                              \
        BFC_TELL_COUNTER(bar());                                                                   \
        bfc_capture_begin();                                                                       \
        CUresult result = bfc_load_acquire(&places[place])(WORDS(PASS));                           \
        note_result(result);                                                                       \
        BFC_TELL_COUNTER(unbar());                                                                 \
        return result;                                                                             \
    }
WRAPPER(0)
WRAPPER(1)
WRAPPER(2)
WRAPPER(3)
WRAPPER(4)
WRAPPER(5)
WRAPPER(6)
WRAPPER(7)

static entry *const wrappers[PLACES] = {wrapper_0, wrapper_1, wrapper_2, wrapper_3,
                                        wrapper_4, wrapper_5, wrapper_6, wrapper_7};

bool bfc_unknown_begins(const char *name) {
    static const char begin[] = "cuStreamBegin";
    return strncmp(name, begin, sizeof begin - 1) == 0 &&
           (strstr(name, "Capture") || strstr(name, "capture"));
}

/* Returns the index of the driver call's wrapper; if the call has none, it gets a free one. -1: all
 * wrappers are in use. */
static int place_of_entry(entry *real) {
    int place = 0;
    pthread_mutex_lock(&lock);
    while (place < PLACES && places[place] && places[place] != real)
        place++;
    if (place < PLACES)
        bfc_store_release(&places[place], real);
    pthread_mutex_unlock(&lock);
    return place < PLACES ? place : -1;
}

void *bfc_unknown_wrapper(const void *real) {
    for (int place = 0; place < PLACES; place++)
        if (real && __extension__(void *) bfc_load_acquire(&places[place]) == real)
            return __extension__(void *) wrappers[place];
    return NULL;
}

void *bfc_unknown_real(const void *wrapper) {
    for (int place = 0; place < PLACES; place++)
        if (__extension__(void *) wrappers[place] == wrapper)
            return __extension__(void *) bfc_load_acquire(&places[place]);
    return NULL;
}

void *bfc_unknown_entry(const char *name, void *real) {
    if (!bfc_unknown_begins(name) || bfc_unknown_real(real))
        return real;
    entry *called;
    *(void **)&called = real;
    int place = place_of_entry(called);
    if (place >= 0)
        return __extension__(void *) wrappers[place];
    /* no wrapper is left to notice a capture that `real` begins, so one counts as begun now */
    BFC_TELL_COUNTER(bar());
    bfc_capture_begin();
    note_result(CUDA_SUCCESS);
    return real;
}
