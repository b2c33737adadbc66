// Host code of the kernels in kernels.cu.
#include "sim/calls/kernels/builtin.h"

#include "sim/base/clock.h"
#include "sim/base/options.h"
#include "sim/kernel.h"

#include <cuda.h>
#include <string.h>

static uint64_t number(const struct sim_launch *launch, size_t which) {
    uint64_t value = 0;
    memcpy(&value, launch->parameters[which], sizeof value);
    return value;
}

static uint32_t word(const struct sim_launch *launch, size_t which) {
    uint32_t value = 0;
    memcpy(&value, launch->parameters[which], sizeof value);
    return value;
}

static char *span(const struct sim_launch *launch, size_t which, uint64_t bytes) {
    return launch->reach(number(launch, which), bytes);
}

static int fill(const struct sim_launch *launch) {
    uint64_t count = number(launch, 1);
    char *bytes = span(launch, 0, count);
    if (bytes == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    memset(bytes, (int)word(launch, 2), count);
    return 0;
}

static int slow_fill(const struct sim_launch *launch) {
    sim_pause((unsigned)number(launch, 3));
    return fill(launch);
}

static int spin(const struct sim_launch *launch) {
    sim_pause((unsigned)number(launch, 0));
    return 0;
}

static int copy(const struct sim_launch *launch) {
    uint64_t count = number(launch, 2);
    char *to = span(launch, 0, count);
    const char *from = span(launch, 1, count);
    if (to == NULL || from == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    memmove(to, from, count);
    return 0;
}

static int add(const struct sim_launch *launch) {
    uint64_t count = number(launch, 1);
    uint32_t *words = (uint32_t *)(void *)span(launch, 0, count * sizeof *words);
    if (words == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (uint64_t i = 0; i < count; i++) {
        words[i] += word(launch, 2);
    }
    return 0;
}

static int check(const struct sim_launch *launch) {
    uint64_t count = number(launch, 1);
    const unsigned char *bytes = (const unsigned char *)span(launch, 0, count);
    uint32_t *wrong = (uint32_t *)(void *)span(launch, 3, sizeof *wrong);
    uint32_t found = 0;
    if (bytes == NULL || wrong == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (uint64_t i = 0; i < count; i++) {
        found += bytes[i] != (unsigned char)word(launch, 2);
    }
    __atomic_fetch_add(wrong, found, __ATOMIC_RELAXED);
    return 0;
}

static int wait_flag(const struct sim_launch *launch) {
    for (;;) {
        // Anew: it may have been unmapped.
        const uint32_t *flag = (const uint32_t *)(void *)span(launch, 0, sizeof *flag);
        if (flag == NULL) {
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == word(launch, 1)) {
            return 0;
        }
        if (sim_options.step != 0) {
            return SIM_AGAIN;
        }
        sim_pause(20);
    }
}

static int set_flag(const struct sim_launch *launch) {
    uint32_t *flag = (uint32_t *)(void *)span(launch, 0, sizeof *flag);
    if (flag == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    __atomic_store_n(flag, word(launch, 1), __ATOMIC_RELEASE);
    return 0;
}

static int poke(const struct sim_launch *launch) {
    char *byte = span(launch, 0, 1);
    if (byte == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    *byte = (char)word(launch, 1);
    return 0;
}

const struct sim_builtin sim_builtins[] = {
    {"fill", fill},
    {"slow_fill", slow_fill},
    {"spin", spin},
    {"copy", copy},
    {"add", add},
    {"check", check},
    {"wait_flag", wait_flag},
    {"set_flag", set_flag},
    {"poke", poke},
    {NULL, NULL},
};
