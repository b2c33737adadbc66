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
    sim_options.stats = getenv("SIM_STATS");
    sim_options.latency = getenv("SIM_LATENCY");
    sim_options.fail = getenv("SIM_FAIL");
    sim_options.needs = getenv("SIM_NEEDS");
    sim_options.share = getenv("SIM_SHARE");
}

// ---- latencies ----

// What the names in SIM_LATENCY stand for: all calls whose name begins so.
static const struct {
    const char *name, *prefix;
} classes[] = {
    {"alloc", "cuMemAlloc"},      {"free", "cuMemFree"},           {"copy", "cuMemcpy"},
    {"set", "cuMemset"},          {"launch", "cuLaunch"},          {"launch", "cuGraphLaunch"},
    {"sync", "cuCtxSynchronize"}, {"sync", "cuStreamSynchronize"}, {"sync", "cuEventSynchronize"},
    {"record", "cuEventRecord"},  {"record", "cuCtxRecordEvent"},  {"wait", "cuStreamWaitEvent"},
    {"wait", "cuCtxWaitEvent"},   {"query", "cuEventQuery"},       {"query", "cuStreamQuery"},
    {"info", "cuMemGetInfo"},
};

// The figures behind `typical` are named in sim/README.md.
static const char typical[] = "alloc:7,free:7,launch:5,copy:5,set:5,sync:3,record:2,wait:2,"
                              "query:1,info:5";

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

static bool latency_in(const char *list, const char *call, unsigned *us) {
    bool found = false;
    while (list != NULL && *list != '\0') {
        const char *colon = strchr(list, ':');
        if (colon == NULL) {
            sim_complain("SIM_LATENCY", sim_options.latency,
                         "'typical' or a list of name:microseconds");
            sim_options.latency = NULL;
            return false;
        }
        if (sim_stands_for(list, (size_t)(colon - list), call)) {
            *us = (unsigned)strtoul(colon + 1, NULL, 10);
            found = true;
        }
        list = strchr(colon, ',');
        list = list == NULL ? NULL : list + 1;
    }
    return found;
}

unsigned sim_latency_of(const char *call) {
    unsigned us = 0;
    if (sim_options.latency == NULL) {
        return 0;
    }
    const char *list = sim_options.latency;
    if (strncmp(list, "typical", 7) == 0 && (list[7] == '\0' || list[7] == ',')) {
        latency_in(typical, call, &us);
        list += list[7] == ',' ? 8 : 7;
    }
    latency_in(list, call, &us);
    return us;
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
