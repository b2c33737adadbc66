// What nvcc's clients share.
#ifndef BFC_TESTS_GPU_CLIENT_CUH
#define BFC_TESTS_GPU_CLIENT_CUH

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void must(int result, const char *what) {
    if (result != 0) {
        std::fprintf(stderr, "%s: error %d\n", what, result);
        std::exit(1);
    }
}
#define MUST(call) must((int)(call), #call)

// FNV-1a, by words (sizes are multiples of four).
static uint64_t digested = 14695981039346656037u;

static void digest(const void *data, size_t bytes) {
    const uint32_t *words = (const uint32_t *)data;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        digested = (digested ^ words[i]) * 1099511628211u;
}

static void print(const char *client, double seconds) {
    std::printf("{\"client\": \"%s\", \"digest\": \"%016llx\", \"seconds\": %.4f}\n", client,
                (unsigned long long)digested, seconds);
}

#endif
