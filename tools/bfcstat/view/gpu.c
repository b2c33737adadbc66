#include "tools/bfcstat/view/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "segment/figures.h"

uint64_t gpu_others(const struct gpu *gpu) {
    return bfc_subtract_saturating(gpu->used, gpu->in_use + gpu->cached);
}

uint64_t gpu_free(const struct gpu *gpu) {
    return bfc_subtract_saturating(gpu->total, gpu->used);
}

char *gpu_bus_id(const char *foreign, char *text, size_t size) {
    unsigned domain, bus, device, function;
    text[0] = '\0';
    if (sscanf(foreign, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) == 4)
        snprintf(text, size, "%04X:%02X:%02X.%X", domain, bus, device, function);
    return text;
}

char *gpu_short_bus_id(const char *bus_id, char *text, size_t size) {
    bool first_domain = strncmp(bus_id, "0000:", 5) == 0;
    snprintf(text, size, "%s", bus_id + (first_domain ? 5 : 0));
    return text;
}

char *gpu_uuid(const uint8_t uuid[16], char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "GPU");
    for (size_t i = 0; i < 16; i++) {
        bool starts_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%02x", starts_group ? "-" : "", uuid[i]);
    }
    return text;
}

char *gpu_short_uuid(const uint8_t uuid[16], char *text, size_t size) {
    snprintf(text, size, "%02x%02x%02x%02x", uuid[0], uuid[1], uuid[2], uuid[3]);
    return text;
}

char *pool_bus_id(const struct bfc_segment_pool *pool, char *text, size_t size) {
    char whole[GPU_SHORT_TEXT];
    gpu_short_bus_id(gpu_bus_id(pool->device_bus_id, whole, sizeof whole), text, size);
    if (!text[0])
        snprintf(text, size, "%" PRId64, pool->device);
    return text;
}

char *pool_uuid(const struct bfc_segment_pool *pool, char *text, size_t size) {
    if (bfc_pool_is_host(pool))
        snprintf(text, size, "host");
    else
        gpu_short_uuid(pool->device_uuid, text, size);
    return text;
}
