// The variables SIM_*: read once, at the first driver call. A malformed one is named on standard
// error and its default holds.
#include "sim/base/options.h"

#include "sim/base/limits.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_options sim_options = {
    .devices = 1,
    .memory = (size_t)16 << 30,
    .delay_us = 200,
    .driver_version = CUDA_VERSION,
    .peers = true,
    .mapping = true,
    .maps_host = true,
    .host_free_waits = true,
};

void sim_complain(const char *name, const char *value, const char *accepted) {
    fprintf(stderr, "sim: %s=%s is not %s; the default holds\n", name, value, accepted);
}

static unsigned long long scale_of(char suffix) {
    switch (suffix) {
    case 'K':
        return 1ULL << 10;
    case 'M':
        return 1ULL << 20;
    case 'G':
        return 1ULL << 30;
    case 'T':
        return 1ULL << 40;
    default:
        return 0;
    }
}

static bool number(const char *name, unsigned long long least, unsigned long long most,
                   bool suffixes, unsigned long long *out) {
    const char *value = getenv(name);
    if (value == NULL || *value == '\0') {
        return false;
    }
    char *end = NULL;
    unsigned long long parsed = strtoull(value, &end, 0);
    if (suffixes && *end != '\0' && scale_of(*end) != 0) {
        parsed *= scale_of(*end++);
    }
    if (end == value || *end != '\0' || *value == '-' || parsed < least || parsed > most) {
        char accepted[96];
        snprintf(accepted, sizeof accepted, "a number from %llu to %llu%s", least, most,
                 suffixes ? ", with K, M, G or T" : "");
        sim_complain(name, value, accepted);
        return false;
    }
    *out = parsed;
    return true;
}

// Whether the second of two words was chosen, the first being the default.
static bool chosen(const char *name, const char *first, const char *second) {
    const char *value = getenv(name);
    char accepted[32];
    if (value == NULL || *value == '\0' || strcmp(value, first) == 0) {
        return false;
    }
    if (strcmp(value, second) == 0) {
        return true;
    }
    snprintf(accepted, sizeof accepted, "%s or %s", first, second);
    sim_complain(name, value, accepted);
    return false;
}

// As CUDA_VISIBLE_DEVICES chooses and orders them: numbers up to the first that is none of a
// device. A device that is named twice leaves none.
static void choose_visible(void) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    bool taken[SIM_MAX_DEVICES] = {false};
    sim_options.installed = sim_options.devices;
    for (int i = 0; i < sim_options.installed; i++) {
        sim_options.place[i] = i;
    }
    for (sim_options.devices = list == NULL ? sim_options.installed : 0; list != NULL;) {
        char *end = NULL;
        long place = strtol(list, &end, 10);
        if (end == list || (*end != ',' && *end != '\0') || place < 0 ||
            place >= sim_options.installed) {
            return;
        }
        if (taken[place]) {
            sim_options.devices = 0;
            return;
        }
        taken[place] = true;
        sim_options.place[sim_options.devices++] = (int)place;
        list = *end == ',' ? end + 1 : NULL;
    }
}

void sim_options_read(void) {
    static bool done;
    unsigned long long value = 0;
    if (done) {
        return;
    }
    done = true;
    if (number("SIM_DEVICES", 0, SIM_MAX_DEVICES, false, &value)) {
        sim_options.devices = (int)value;
    }
    choose_visible();
    if (number("SIM_MEMORY", 4 << 20, 1ULL << 42, true, &value)) {
        sim_options.memory = (size_t)value;
    }
    if (number("SIM_SEED", 0, UINT64_MAX, false, &value)) {
        sim_options.seed = value;
    }
    if (number("SIM_DELAY_US", 0, 10000000, false, &value)) {
        sim_options.delay_us = (unsigned)value;
    }
    if (number("SIM_STEP", 0, 1000000, false, &value)) {
        sim_options.step = (unsigned)value;
    }
    if (number("SIM_DRIVER_VERSION", 11000, 99990, false, &value)) {
        sim_options.driver_version = (int)value;
    }
    if (number("SIM_PEERS", 0, 1, false, &value)) {
        sim_options.peers = value != 0;
    }
    if (number("SIM_VIRTUAL", 0, 1, false, &value)) {
        sim_options.mapping = value != 0;
    }
    if (number("SIM_MAPS_HOST", 0, 1, false, &value)) {
        sim_options.maps_host = value != 0;
    }
    if (number("SIM_HOST_FREE_WAITS", 0, 1, false, &value)) {
        sim_options.host_free_waits = value != 0;
    }
    if (number("SIM_FAULTS_SPREAD", 0, 1, false, &value)) {
        sim_options.faults_spread = value != 0;
    }
    if (number("SIM_LOW", 0, 1, false, &value)) {
        sim_options.low = value != 0;
    }
    sim_options.fresh_zero = chosen("SIM_FRESH", "stale", "zero");
    sim_options.skips_kernels = chosen("SIM_KERNELS", "refuse", "skip");
    sim_options.stats = getenv("SIM_STATS");
    sim_options.latency = getenv("SIM_LATENCY");
    sim_options.fail = getenv("SIM_FAIL");
    sim_options.needs = getenv("SIM_NEEDS");
    sim_options.halt = getenv("SIM_HALT");
    sim_options.share = getenv("SIM_SHARE");
}

// ---- latencies ----

// What the names in SIM_LATENCY stand for: all calls whose name begins so.
static const struct {
    const char *name, *prefix;
} classes[] = {
    {"alloc", "cuMemAlloc"},
    {"free", "cuMemFree"},
    {"copy", "cuMemcpy"},
    {"set", "cuMemset"},
    {"launch", "cuLaunch"},
    {"launch", "cuGraphLaunch"},
    {"sync", "cuCtxSynchronize"},
    {"sync", "cuStreamSynchronize"},
    {"sync", "cuEventSynchronize"},
    {"record", "cuEventRecord"},
    {"record", "cuCtxRecordEvent"},
    {"wait", "cuStreamWaitEvent"},
    {"wait", "cuCtxWaitEvent"},
    {"query", "cuEventQuery"},
    {"query", "cuStreamQuery"},
    {"info", "cuMemGetInfo"},
    {"reserve", "cuMemAddressReserve"},
    {"unreserve", "cuMemAddressFree"},
    {"create", "cuMemCreate"},
    {"map", "cuMemMap"},
    {"access", "cuMemSetAccess"},
    {"unmap", "cuMemUnmap"},
    {"release", "cuMemRelease"},
};

// The figures behind `typical` are named in sim/README.md.
static const char typical[] = "alloc:7,free:7,launch:5,copy:5,set:5,sync:3,record:2,wait:2,"
                              "query:1,info:5,reserve:2,unreserve:1,create:29,map:2,access:38,"
                              "unmap:34,release:23";

bool sim_stands_for(const char *name, size_t length, const char *call) {
    if (strlen(call) == length && strncmp(name, call, length) == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) == length && strncmp(name, classes[i].name, length) == 0 &&
            strncmp(call, classes[i].prefix, strlen(classes[i].prefix)) == 0) {
            return true;
        }
    }
    return false;
}

// The calls that know how many bytes they are about.
static const char *const sized[] = {
    "cuMemAlloc_v2", "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate",
    "cuMemMap",      "cuMemSetAccess",      "cuMemUnmap"};

static bool names_sized(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++) {
        if (sim_stands_for(name, length, sized[i])) {
            return true;
        }
    }
    return false;
}

// The number after + in microseconds/M. NULL: malformed, else its end.
static const char *latency_slope(const char *number, double *out) {
    char *end = NULL;
    *out = strtod(number, &end);
    return end != number && strncmp(end, "/M", 2) == 0 ? end + 2 : NULL;
}

static bool plausible(double us) {
    return us >= 0 && us <= 1e9;
}

// One entry: name:microseconds[+microseconds/M]. NULL: malformed, else its end.
static const char *latency_entry(const char *entry, const char *call, struct sim_latency *out) {
    size_t length = strcspn(entry, ":,");
    struct sim_latency read = {0};
    char *number_end = NULL;
    if (length == 0 || entry[length] != ':') {
        return NULL;
    }
    read.us = strtod(entry + length + 1, &number_end);
    const char *end = number_end;
    if (end == entry + length + 1) {
        return NULL;
    }
    if (*end == '+') {
        end = names_sized(entry, length) ? latency_slope(end + 1, &read.us_per_mib) : NULL;
    }
    if (end == NULL || (*end != ',' && *end != '\0') || !plausible(read.us) ||
        !plausible(read.us_per_mib)) {
        return NULL;
    }
    if (sim_stands_for(entry, length, call)) {
        *out = read;
    }
    return end;
}

static bool latency_in(const char *list, const char *call, struct sim_latency *out) {
    while (list != NULL && *list != '\0') {
        list = latency_entry(list, call, out);
        if (list == NULL) {
            return false;
        }
        list += *list == ',';
    }
    return true;
}

struct sim_latency sim_latency_of(const char *call) {
    struct sim_latency latency = {0};
    if (sim_options.latency == NULL) {
        return latency;
    }
    const char *list = sim_options.latency;
    if (strncmp(list, "typical", 7) == 0 && (list[7] == '\0' || list[7] == ',')) {
        latency_in(typical, call, &latency);
        list += list[7] == ',' ? 8 : 7;
    }
    if (!latency_in(list, call, &latency)) {
        sim_complain("SIM_LATENCY", sim_options.latency,
                     "'typical' and/or a list of name:microseconds, and for alloc, reserve, "
                     "unreserve, create, map, access and unmap +microseconds/M too");
        sim_options.latency = NULL;
        return (struct sim_latency){0};
    }
    return latency;
}

// ---- calls that need memory ----

// SIM_NEEDS is name[,name...]:size, and that as often as wanted, by semicolons.
size_t sim_need_of(const char *call) {
    const char *list = sim_options.needs;
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",:;");
        bool is_it = strlen(call) == length && strncmp(list, call, length) == 0;
        list += length;
        if (is_it) {
            char *end = NULL;
            const char *size = strchr(list, ':');
            size_t bytes = size == NULL ? 0 : strtoull(size + 1, &end, 10);
            return size == NULL ? 0 : bytes * (scale_of(*end) != 0 ? scale_of(*end) : 1);
        }
        list = *list == ':' ? strchr(list, ';') : list;
        list = list == NULL || *list == '\0' ? NULL : list + 1;
    }
    return 0;
}
