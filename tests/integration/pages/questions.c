/*
 * What a program is told of its memory, and what it may do with it by calls that are for other
 * kinds of memory: as natively, whatever is behind the addresses (BFC_BACKING=pages).
 */
#include "tests/conformance/gpu.h"

static const size_t large = 40 * MIB + 5000;

/* ---- attributes ---- */

static const struct question {
    const char *name;
    CUpointer_attribute attribute;
    size_t size;    /* of the answer, in bytes */
    bool is_place;  /* an address, to be told from the block's start, or the mapping's from its page
                     */
    bool is_secret; /* a number that differs from run to run */
} questions[] = {
#define ASK(name, ...)                                                                             \
    { #name, CU_POINTER_ATTRIBUTE_##name, __VA_ARGS__ }
    ASK(CONTEXT, sizeof(CUcontext), false, true),
    ASK(MEMORY_TYPE, sizeof(unsigned), false, false),
    ASK(DEVICE_POINTER, sizeof(CUdeviceptr), true, false),
    ASK(HOST_POINTER, sizeof(void *), false, false),
    ASK(SYNC_MEMOPS, 1, false, false),
    ASK(BUFFER_ID, sizeof(uint64_t), false, true),
    ASK(IS_MANAGED, 1, false, false),
    ASK(DEVICE_ORDINAL, sizeof(int), false, false),
    ASK(IS_LEGACY_CUDA_IPC_CAPABLE, 1, false, false),
    ASK(RANGE_START_ADDR, sizeof(CUdeviceptr), true, false),
    ASK(RANGE_SIZE, sizeof(size_t), false, false),
    ASK(MAPPED, 1, false, false),
    ASK(ALLOWED_HANDLE_TYPES, sizeof(uint64_t), false, false),
    ASK(IS_GPU_DIRECT_RDMA_CAPABLE, 1, false, false),
    ASK(ACCESS_FLAGS, sizeof(unsigned), false, false),
    ASK(MEMPOOL_HANDLE, sizeof(void *), false, false),
    ASK(MAPPING_SIZE, sizeof(size_t), false, false),
    ASK(MAPPING_BASE_ADDR, sizeof(CUdeviceptr), true, false),
    ASK(MEMORY_BLOCK_ID, sizeof(uint64_t), false, true),
#undef ASK
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static CUdeviceptr place_of(const struct question *question, CUdeviceptr start) {
    return question->attribute == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
               ? start / (2 * MIB) * (2 * MIB)
               : start;
}

static void tell_answer(const struct question *question, uint64_t answer, CUdeviceptr start) {
    if (question->is_secret)
        printf("  %s: %s\n", question->name, answer ? "some" : "none");
    else
        printf("  %s: %llu\n", question->name,
               (unsigned long long)(answer - (question->is_place ? place_of(question, start) : 0)));
}

static void ask_one_by_one(CUdeviceptr pointer, CUdeviceptr start) {
    for (int i = 0; i < QUESTIONS; i++) {
        uint64_t answer = 0, data[4] = {0};
        int code = (int)cuPointerGetAttribute(data, questions[i].attribute, pointer);
        memcpy(&answer, data, questions[i].size);
        if (code)
            printf("  %s: %s\n", questions[i].name, name_of(code));
        else
            tell_answer(&questions[i], answer, start);
    }
}

static void ask_at_once(CUdeviceptr pointer, CUdeviceptr start) {
    CUpointer_attribute attributes[QUESTIONS];
    uint64_t data[QUESTIONS][4] = {{0}}, answer;
    void *places[QUESTIONS];
    for (int i = 0; i < QUESTIONS; i++) {
        attributes[i] = questions[i].attribute;
        places[i] = data[i];
    }
    say("  all at once", (int)cuPointerGetAttributes(QUESTIONS, attributes, places, pointer));
    for (int i = 0; i < QUESTIONS; i++) {
        answer = 0;
        memcpy(&answer, data[i], questions[i].size);
        if (questions[i].is_place && !answer)
            answer = place_of(&questions[i], start);
        tell_answer(&questions[i], answer, start);
    }
}

static void ask(const char *where, CUdeviceptr pointer, CUdeviceptr start) {
    puts(where);
    ask_one_by_one(pointer, start);
    ask_at_once(pointer, start);
}

/* ---- calls for other kinds of memory ---- */

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

/* A program's own page does not get behind a block's addresses, nor behind others of ours. */
static void map_over(CUdeviceptr pointer) {
    CUmemGenericAllocationHandle page;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    MUST(cuMemCreate(&page, 2 * MIB, &what, 0));
    say("  map over it", (int)cuMemMap(pointer, 2 * MIB, 0, page, 0));
    say("  map behind it", (int)cuMemMap(pointer + 256 * MIB, 2 * MIB, 0, page, 0));
    MUST(cuMemRelease(page));
}

static void try_pages(CUdeviceptr pointer, size_t bytes) {
    CUmemAccessDesc none = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUmemGenericAllocationHandle page;
    unsigned long long flags;
    say("  get access", (int)cuMemGetAccess(&flags, &here, pointer));
    say("  take access away", (int)cuMemSetAccess(pointer, bytes, &none, 1));
    say("  unmap", (int)cuMemUnmap(pointer, bytes));
    say("  unmap from before", (int)cuMemUnmap(pointer - 256 * MIB, 256 * MIB + bytes));
    say("  free its addresses", (int)cuMemAddressFree(pointer, bytes));
    say("  a handle", (int)cuMemRetainAllocationHandle(&page, pointer_to(pointer)));
    map_over(pointer);
}

static void try_others(CUdeviceptr pointer, size_t bytes) {
    CUdeviceptr start, mapped;
    size_t size;
    unsigned flags;
    int file;
    say("  address range", (int)cuMemGetAddressRange(&start, &size, pointer));
    int code = (int)cuMemGetHandleForAddressRange(&file, pointer, bytes,
                                                  CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    say("  dma-buf", code);
    if (code == 0)
        close(file);
    say("  prefetch", (int)cuMemPrefetchAsync(pointer, bytes, here, 0, NULL));
    say("  advise", (int)cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
    say("  host's view", (int)cuMemHostGetDevicePointer(&mapped, pointer_to(pointer), 0));
    say("  host's flags", (int)cuMemHostGetFlags(&flags, pointer_to(pointer)));
    say("  free as the host's", (int)cuMemFreeHost(pointer_to(pointer)));
    say("  close as imported", (int)cuIpcCloseMemHandle(pointer));
}

static void try_all(const char *what, CUdeviceptr pointer, size_t bytes) {
    puts(what);
    try_pages(pointer, bytes);
    try_others(pointer, bytes);
}

/* What it maps itself is its own. */
static void use_own_pages(void) {
    CUdeviceptr start;
    CUmemGenericAllocationHandle page, again;
    CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    CUmemAccessDesc all = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned long long flags = 0;
    MUST(cuMemAddressReserve(&start, 8 * MIB, 0, 0, 0));
    MUST(cuMemCreate(&page, 4 * MIB, &what, 0));
    MUST(cuMemMap(start + 2 * MIB, 4 * MIB, 0, page, 0));
    MUST(cuMemSetAccess(start + 2 * MIB, 4 * MIB, &all, 1));
    MUST(cuMemGetAccess(&flags, &here, start + 2 * MIB));
    printf("its own pages: access %llu\n", flags);
    MUST(cuMemRetainAllocationHandle(&again, pointer_to(start + 2 * MIB)));
    tell("its own handle", again == page);
    MUST(cuMemUnmap(start + 2 * MIB, 4 * MIB));
    MUST(cuMemRelease(again));
    MUST(cuMemRelease(page));
    MUST(cuMemAddressFree(start, 8 * MIB));
}

int main(void) {
    use_device(0);
    CUdeviceptr block = address(new_block(large)), small = address(new_block(3000));
    CUdeviceptr inside = (block + 2 * MIB - 1) & ~(CUdeviceptr)(2 * MIB - 1);
    ask("a block's start", block, block);
    ask("its middle", block + large / 2, block);
    ask("its last byte", block + large - 1, block);
    ask("a small block", small, small);
    fill(NULL, pointer_to(block), large, 5);
    MUST(synchronize());
    try_all("a block", inside, 4 * MIB);
    tell("its bytes are there", holds(pointer_to(block), large, 5));
    MUST(release(pointer_to(block)));
    ask("a freed block", block, block);
    try_all("a freed block", inside, 4 * MIB);
    use_own_pages();
    return 0;
}
