/* The table of features. */
#include "interpose/table/feature.h"

#include <stdio.h>

#include "base/atomic.h"
#include "interpose/table/counter.h"

/* A row for the core itself, without functions. Its only purpose is that the section of features,
 * whose ends the linker names, exists in a library that is built without features. */
static const struct bfc_feature core;
BFC_REGISTER_FEATURE(core);

__thread int16_t bfc_allocations_until_sample[BFC_SIZE_BINS] INITIAL_EXEC;

const struct bfc_counter *bfc_counter;
__thread struct bfc_submitter bfc_submitter INITIAL_EXEC;
struct bfc_only bfc_only = {BFC_STREAMS_MANY};

/* Two threads may call this at once: both give each feature the same slot. */
void bfc_features_begin(void) {
    unsigned slots = 0;
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->slot)
        bfc_store_relaxed((*feature)->slot, slots++);
}

void bfc_features_names(char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    BFC_FOR_EACH_FEATURE(feature)
    if ((*feature)->name && used < size)
        used += (size_t)snprintf(text + used, size - used, " %s", (*feature)->name);
}

/* Called when bfc_allocations_until_sample[bin] has fallen below 0: tells the features of the
 * allocation. If none sets that counter again, it is set high, so that this call stays rare. */
NOINLINE void bfc_features_sample(const struct bfc_arena *arena, CUdeviceptr pointer, size_t bytes,
                                  unsigned bin) {
    BFC_TELL_FEATURES(sample_due, arena, pointer, bytes, bin);
    if (bfc_allocations_until_sample[bin] < 0)
        bfc_allocations_until_sample[bin] = BFC_NO_SAMPLE_SOON;
}
