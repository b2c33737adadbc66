/*
 * Pitched memory is linear memory [D], the first of a width and later ones alike: its range and
 * attributes, textures over it, second frees, refused sizes, and calls of a thread that captures.
 * What its range holds beyond the rows is the driver's own affair, but the same for both.
 */
#include "tests/conformance/pointers.h"

static bool makes_texture(const void *rows, size_t pitch, size_t width, size_t height) {
    CUtexObject texture;
    CUDA_RESOURCE_DESC what = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                             CU_TR_ADDRESS_MODE_CLAMP}};
    what.res.pitch2D.devPtr = address(rows);
    what.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
    what.res.pitch2D.numChannels = 1;
    what.res.pitch2D.width = width;
    what.res.pitch2D.height = height;
    what.res.pitch2D.pitchInBytes = pitch;
    return DRIVER(cuTexObjectCreate)(&texture, &what, &how, NULL) == CUDA_SUCCESS &&
           DRIVER(cuTexObjectDestroy)(texture) == CUDA_SUCCESS;
}

static void look_at_pointer(char *rows, size_t bytes) {
    CUdeviceptr start = 0;
    size_t size = 0;
    struct told told = {0};
    MUST(DRIVER(cuMemGetAddressRange)(&start, &size, address(rows + bytes - 1)));
    tell("  the range begins where the rows do", start == address(rows));
    tell("  the range holds all rows", size >= bytes);
    printf("~   the range is %zu bytes larger\n", size - bytes);
    MUST(ask_all(&told, rows + bytes / 2));
    tell("  the attributes say the same", told.range_start == start && told.range_size == size &&
                                              told.device_pointer == address(rows + bytes / 2));
    tell("  it is device memory", told.memory_type == CU_MEMORYTYPE_DEVICE && !told.managed);
    printf("~   ordinal %d, mapped %d\n", told.ordinal, (int)told.mapped);
}

static void look(size_t width, size_t height) {
    void *rows = NULL;
    size_t pitch = 0;
    printf("%zu x %zu: ", width, height);
    int code = allocate_pitched(&rows, &pitch, width, height);
    puts(name_of(code));
    if (code != 0)
        return;
    printf("~   pitch %zu\n", pitch);
    look_at_pointer(rows, pitch * height);
    tell("  a texture can be made of it", makes_texture(rows, pitch, width, height));
    MUST(DRIVER(cuMemsetD2D8)(address(rows), pitch, 7, width, height));
    tell("  a row can be written and read", holds((char *)rows + pitch * (height - 1), width, 7));
    if (pitch * height > 512)
        say("  free of a later row", release((char *)rows + 512));
    say("  free", release(rows));
    say("  free again", release(rows));
}

/* Which code is answered is the same for both; width and height 0 are the runtime's affair. */
static void look_at_refusals(void) {
    void *rows = NULL;
    size_t pitch = 0;
    CUdeviceptr at;
    printf("~ no width: %s\n", name_of(allocate_pitched(&rows, &pitch, 0, 7)));
    printf("~ no height: %s\n", name_of(allocate_pitched(&rows, &pitch, 100, 0)));
    printf("~ nowhere: %s\n", name_of(allocate_pitched(NULL, &pitch, 100, 7)));
    for (unsigned element = 0; element <= 32; element = element ? element * 2 : 1) {
        CUresult result = DRIVER(cuMemAllocPitch)(&at, &pitch, 1024, 7, element);
        printf("~ elements of %u bytes: %s\n", element, name_of((int)result));
        if (result == CUDA_SUCCESS)
            MUST(DRIVER(cuMemFree)(at));
    }
    say("more rows than the device has room for", allocate_pitched(&rows, &pitch, 100, 1u << 31));
    tell("more rows than can be counted is refused",
         allocate_pitched(&rows, &pitch, 100, SIZE_MAX / 256) != 0);
    tell("wider than can be counted is refused", allocate_pitched(&rows, &pitch, SIZE_MAX, 1) != 0);
}

static void look_while_capturing(const char *name, CUstreamCaptureMode mode, size_t width) {
    CUstream stream = new_stream();
    CUgraph graph = NULL;
    void *rows = NULL;
    size_t pitch = 0;
    puts(name);
    MUST(begin_capture(stream, mode));
    int code = allocate_pitched(&rows, &pitch, width, 7);
    say("  allocate", code);
    int ended = end_capture(stream, &graph);
    say("  end of the capture", ended);
    if (ended == 0)
        MUST(DRIVER(cuGraphDestroy)(graph));
    if (code == 0)
        MUST(release(rows));
    MUST(end_stream(stream));
}

int main(void) {
    use_device(0);
    for (int round = 0; round < 3; round++) {
        look(1, 1);
        look(100, 7);
        look(512, 3);
        look(513, 1000);
        look(70000, 100);
    }
    look_at_refusals();
    look_while_capturing("global", CU_STREAM_CAPTURE_MODE_GLOBAL, 100);
    look_while_capturing("thread-local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 100);
    look_while_capturing("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED, 100);
    look_while_capturing("relaxed, a new width", CU_STREAM_CAPTURE_MODE_RELAXED, 9000);
    return 0;
}
