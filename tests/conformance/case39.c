/*
 * Memory shared with another process by its base pointer, without any offset, as NCCL's legacy path
 * does: the importer sees the allocation's bytes, and the exporter the importer's [D].
 */
#include "tests/conformance/processes.h"

enum { SMALL = 5000, LARGE = 3 * 1024 * 1024 + 1, BLOCKS = 3 };
static const size_t sizes[BLOCKS] = {SMALL, SMALL, LARGE};

static void look(const char *pointer, size_t bytes, unsigned value) {
    tell("its bytes", holds(pointer, bytes, value));
}

/* Which error it is, is not documented. */
static void refused(const char *what, int code) {
    printf("%s: %s\n~ with %s\n", what, code ? "refused" : "accepted", name_of(code));
}

static int import(const struct other *exporter) {
    share_handle handles[BLOCKS];
    void *blocks[BLOCKS], *again = NULL;
    take(exporter, handles, sizeof handles);
    use_device(0);
    for (int i = 0; i < BLOCKS; i++) {
        say("open", open_shared(&blocks[i], handles[i]));
        look(blocks[i], sizes[i], (unsigned)i + 1);
    }
    say("open again", open_shared(&again, handles[1]));
    tell("at the same address", again == blocks[1]);
    refused("free", release(blocks[1]));
    refused("close inside", close_shared((char *)blocks[1] + 100));
    say("close", close_shared(again));
    look(blocks[1], sizes[1], 2);
    for (int i = 0; i < BLOCKS; i++)
        fill(NULL, blocks[i], sizes[i], (unsigned)i + 11);
    MUST(synchronize());
    for (int i = 0; i < BLOCKS; i++)
        say("close", close_shared(blocks[i]));
    refused("close once more", close_shared(blocks[1]));
    fflush(stdout);
    pass(exporter);
    return 0;
}

int main(void) {
    struct other other;
    share_handle handles[BLOCKS], twice;
    char *blocks[BLOCKS];
    if (fork_other(&other))
        return import(&other);
    use_device(0);
    void *before = new_block(700);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(sizes[i]);
        fill(NULL, blocks[i], sizes[i], (unsigned)i + 1);
    }
    MUST(synchronize());
    memset(handles, 0, sizeof handles);
    for (int i = 0; i < BLOCKS; i++)
        say("share", share(&handles[i], blocks[i]));
    MUST(share(&twice, blocks[1]));
    tell("shared twice is the same handle", memcmp(&twice, &handles[1], sizeof twice) == 0);
    tell("two allocations have two", memcmp(&handles[0], &handles[1], sizeof twice) != 0);
    void *own = NULL;
    say("open its own", open_shared(&own, handles[1]));
    fflush(stdout);
    give(&other, handles, sizeof handles);
    await(&other);
    tell("the importer is well", end_of(&other) == 0);
    for (int i = 0; i < BLOCKS; i++)
        look(blocks[i], sizes[i], (unsigned)i + 11);
    refused("share what is freed", (MUST(release(blocks[0])), share(&twice, blocks[0])));
    refused("share the host's", share(&twice, &other));
    MUST(release(blocks[1]));
    MUST(release(blocks[2]));
    MUST(release(before));
    return 0;
}
