/*
 * However a program hears that its context has failed, the next allocations answer that too. Each
 * way to hear of it has a context of its own, whose pool has a free block to serve them from.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/gpu.h"

enum way {
    STREAM_QUERY,
    EVENT_QUERY,
    COPY,
    COPY_LATER,
    SET,
    SET_LATER,
    PAST_POOL,
    INFO,
    GROWTH,
    WAYS
};

static const char *const names[WAYS] = {"a query of the stream",
                                        "a query of an event",
                                        "a copy to the host",
                                        "a copy in a stream",
                                        "a set",
                                        "a set in a stream",
                                        "an allocation past the pool",
                                        "cuMemGetInfo",
                                        "an allocation that needs growth"};

struct scene {
    CUstream stream;
    CUevent event;
    CUdeviceptr kept;
};

static CUresult listen(enum way way, const struct scene *scene) {
    unsigned char word[4];
    CUdeviceptr taken;
    size_t free_bytes, total_bytes;
    void *large;
    switch (way) {
    case STREAM_QUERY:
        return cuStreamQuery(scene->stream);
    case EVENT_QUERY:
        return cuEventQuery(scene->event);
    case COPY:
        return cuMemcpyDtoH(word, scene->kept, sizeof word);
    case COPY_LATER:
        return cuMemcpyDtoHAsync(word, scene->kept, sizeof word, scene->stream);
    case SET:
        return cuMemsetD8(scene->kept, 1, 4);
    case SET_LATER:
        return cuMemsetD8Async(scene->kept, 1, 4, scene->stream);
    case PAST_POOL:
        return cuMemAllocManaged(&taken, 4096, CU_MEM_ATTACH_GLOBAL);
    case INFO:
        return cuMemGetInfo(&free_bytes, &total_bytes);
    case GROWTH:
    case WAYS:
        break;
    }
    /* Pages are made by calls that concern the device, and say nothing of a context's failure. */
    const char *backing = getenv("BFC_BACKING");
    if (backing && !strcmp(backing, "pages"))
        return cuMemGetInfo(&free_bytes, &total_bytes);
    return (CUresult)allocate(&large, 32 * MIB);
}

static void hear(enum way way) {
    unsigned long long nowhere = 64;
    unsigned one = 1;
    struct scene scene;
    CUcontext context;
    void *block;
    CUresult heard;
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    scene.stream = new_stream();
    MUST(cuEventCreate(&scene.event, CU_EVENT_DISABLE_TIMING));
    scene.kept = (CUdeviceptr)new_block(8 * MIB);
    MUST(release(new_block(8 * MIB)));
    MUST(launch(scene.stream, "poke", (void *[]){&nowhere, &one}));
    if (way == EVENT_QUERY)
        cuEventRecord(scene.event, scene.stream);
    while ((heard = listen(way, &scene)) == CUDA_SUCCESS || heard == CUDA_ERROR_NOT_READY)
        usleep(20000);
    say(names[way], (int)heard);
    for (int i = 0; i < 2; i++)
        say("  then an allocation", (int)allocate(&block, 4096));
}

int main(void) {
    use_device(0);
    for (enum way way = 0; way < WAYS; way++)
        hear(way);
    return 0;
}
