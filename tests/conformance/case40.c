/*
 * Memory shared by the handle of a pointer inside an allocation, and that pointer's offset in what
 * cuMemGetAddressRange says, as UCX does: the handle is that of the allocation [F ucx#11724]. Two
 * allocations that lie together, open at once, closed in either order.
 */
#include "tests/conformance/processes.h"

enum { BYTES = 40000, BLOCKS = 2 };

struct message {
    share_handle handle;
    size_t offset, size;
};

static struct message describe(char *inside) {
    struct message message;
    CUdeviceptr start = 0;
    memset(&message, 0, sizeof message);
    MUST(DRIVER(cuMemGetAddressRange)(&start, &message.size, address(inside)));
    MUST(share(&message.handle, inside));
    message.offset = address(inside) - start;
    return message;
}

static int import(const struct other *exporter) {
    struct message messages[BLOCKS];
    char *blocks[BLOCKS], *again = NULL;
    CUdeviceptr start = 0;
    size_t size = 0;
    take(exporter, messages, sizeof messages);
    use_device(0);
    for (int i = 0; i < BLOCKS; i++)
        say("open", open_shared((void **)&blocks[i], messages[i].handle));
    for (int i = 0; i < BLOCKS; i++) {
        unsigned char byte = 0;
        CUdeviceptr at = address(blocks[i] + messages[i].offset);
        MUST(DRIVER(cuMemcpyDtoH)(&byte, at, 1));
        printf("the byte: %d\n", byte);
        say("range", (int)DRIVER(cuMemGetAddressRange)(&start, &size, at));
        tell("of the allocation", start == address(blocks[i]) && size == messages[i].size);
    }
    say("close the first", close_shared(blocks[0]));
    tell("the second's bytes", holds(blocks[1], 1000, 8));
    say("open the first again", open_shared((void **)&again, messages[0].handle));
    tell("the first's bytes", holds(again, 1000, 7));
    say("close the second", close_shared(blocks[1]));
    tell("the first's bytes", holds(again, 1000, 7));
    fill(NULL, again + messages[0].offset, 1, 99);
    MUST(synchronize());
    say("close the first", close_shared(again));
    fflush(stdout);
    pass(exporter);
    return 0;
}

int main(void) {
    struct other other;
    struct message messages[BLOCKS];
    char *blocks[BLOCKS];
    if (fork_other(&other))
        return import(&other);
    use_device(0);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = new_block(BYTES);
        fill(NULL, blocks[i], BYTES, 7 + (unsigned)i);
        fill(NULL, blocks[i] + 12345, 1, 17 + (unsigned)i);
    }
    MUST(synchronize());
    for (int i = 0; i < BLOCKS; i++)
        messages[i] = describe(blocks[i] + 12345);
    tell("the offsets are in the allocation",
         messages[0].offset == 12345 && messages[1].offset == 12345);
    fflush(stdout);
    give(&other, messages, sizeof messages);
    await(&other);
    tell("the importer is well", end_of(&other) == 0);
    unsigned char byte = 0;
    MUST(DRIVER(cuMemcpyDtoH)(&byte, address(blocks[0] + 12345), 1));
    printf("what the importer wrote: %d\n", byte);
    MUST(release(blocks[0]));
    MUST(release(blocks[1]));
    return 0;
}
