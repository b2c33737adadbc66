// Refusals on demand (SIM_FAIL): a call answers with an error without being made.
//
// An entry names the n-th call, or `random:SEED:RATE[:NAME+NAME...]`: one in RATE calls, drawn from
// the seed, with one of the codes that cuda.h documents for the call. Codes that are no refusal of
// the moment but a statement that could be checked (a destroyed context), errors of earlier work
// and those of damaged images are left out.
#include "sim/base/refuse.h"

#include "sim/base/call.h"
#include "sim/base/options.h"
#include "sim/base/random.h"

#include <stdlib.h>
#include <string.h>

#define EVERY CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_NOT_INITIALIZED
#define USUAL EVERY, CUDA_ERROR_INVALID_CONTEXT
#define MAPPING EVERY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED

enum { MOST_CODES = 8 };

// What each call is documented to answer. Calls that are not here are never refused at random.
static const struct {
    const char *name; // without a version
    int codes[MOST_CODES];
} documented[] = {
    {"cuCtxCreate", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuCtxDestroy", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuCtxDisablePeerAccess", {USUAL}},
    {"cuCtxEnablePeerAccess", {USUAL, CUDA_ERROR_TOO_MANY_PEERS}},
    {"cuCtxGetId", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuCtxPopCurrent", {USUAL}},
    {"cuCtxPushCurrent", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuCtxRecordEvent", {USUAL, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED}},
    {"cuCtxSetCurrent", {USUAL}},
    {"cuCtxSynchronize", {USUAL}},
    {"cuCtxWaitEvent", {USUAL, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED}},
    {"cuDeviceGetAttribute", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuDeviceGetName", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuDeviceGetPCIBusId", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuDeviceGetUuid", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuDevicePrimaryCtxReset", {EVERY, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE}},
    {"cuDevicePrimaryCtxRetain", {USUAL, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuDeviceTotalMem", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuDriverGetVersion", {CUDA_ERROR_INVALID_VALUE}},
    {"cuEventCreate", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuEventDestroy", {USUAL, CUDA_ERROR_INVALID_HANDLE}},
    {"cuEventQuery",
     {EVERY, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_READY}},
    {"cuEventRecord", {USUAL, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE}},
    {"cuEventSynchronize", {USUAL, CUDA_ERROR_INVALID_HANDLE}},
    {"cuGraphDestroy", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuGraphExecDestroy", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuGraphInstantiateWithFlags", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuGraphLaunch", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuLaunchKernel",
     {USUAL, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE,
      CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}},
    {"cuMemAddressFree", {MAPPING}},
    {"cuMemAddressReserve", {MAPPING, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuMemAlloc", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuMemAllocAsync",
     {CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE,
      CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuMemCreate", {MAPPING, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuMemExportToShareableHandle", {MAPPING}},
    {"cuMemFree", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuMemFreeAsync",
     {CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE}},
    {"cuMemGetAccess", {MAPPING, CUDA_ERROR_INVALID_DEVICE}},
    {"cuMemGetAllocationGranularity", {MAPPING}},
    {"cuMemGetAllocationPropertiesFromHandle", {MAPPING}},
    {"cuMemGetHandleForAddressRange", {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED}},
    {"cuMemGetInfo", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuMemImportFromShareableHandle", {MAPPING}},
    {"cuMemMap", {MAPPING, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuMemRelease", {MAPPING}},
    {"cuMemRetainAllocationHandle", {MAPPING}},
    {"cuMemSetAccess",
     {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_NOT_SUPPORTED}},
    {"cuMemUnmap", {MAPPING}},
    {"cuMemcpyDtoDAsync", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE}},
    {"cuMemcpyDtoHAsync", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE}},
    {"cuMemcpyPeerAsync", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE}},
    {"cuMemsetD8Async", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuModuleGetFunction", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuModuleLoadData", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuPointerGetAttribute", {USUAL, CUDA_ERROR_INVALID_VALUE}},
    {"cuStreamBeginCapture", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuStreamCreate", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY}},
    {"cuStreamDestroy", {USUAL, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE}},
    {"cuStreamEndCapture", {EVERY, CUDA_ERROR_INVALID_VALUE}},
    {"cuStreamGetCtx", {USUAL, CUDA_ERROR_INVALID_HANDLE}},
    {"cuStreamIsCapturing", {EVERY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT}},
    {"cuStreamQuery", {USUAL, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_READY}},
    {"cuStreamSynchronize", {USUAL, CUDA_ERROR_INVALID_HANDLE}},
    {"cuStreamWaitEvent", {USUAL, CUDA_ERROR_INVALID_HANDLE}},
    {"cuThreadExchangeStreamCaptureMode", {EVERY, CUDA_ERROR_INVALID_VALUE}},
};

static struct {
    bool given;
    uint64_t seed, rate, considered;
    const char *names; // joined by +; NULL: all
} random_refusals;

static void read_random(const char *entry) {
    char *end = NULL;
    random_refusals.seed = strtoull(entry + strlen("random:"), &end, 10);
    random_refusals.rate = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    random_refusals.names = *end == ':' ? end + 1 : NULL;
    random_refusals.given = random_refusals.rate > 0;
    if (!random_refusals.given) {
        sim_complain("SIM_FAIL", entry, "random:SEED:RATE[:NAME+NAME...]");
    }
}

static void read_once(void) {
    static bool done;
    const char *entry = sim_options.fail != NULL ? strstr(sim_options.fail, "random:") : NULL;
    if (!done && entry != NULL) {
        read_random(entry);
    }
    done = true;
}

// Whether a list of names, joined by +, up to a comma, has the call's.
static bool is_among(const char *names, const char *call) {
    for (;; names++) {
        size_t length = strcspn(names, "+,");
        if (sim_stands_for(names, length, call)) {
            return true;
        }
        names += length;
        if (*names != '+') {
            return false;
        }
    }
}

// Is `call` the documented name in one of its versions, or its per-thread twin?
static bool is_version_of(const char *name, const char *call) {
    size_t length = strlen(name);
    return strncmp(name, call, length) == 0 && (call[length] == '\0' || call[length] == '_');
}

const int *sim_codes_of(const char *call) {
    read_once();
    if (!random_refusals.given ||
        (random_refusals.names != NULL && !is_among(random_refusals.names, call))) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++) {
        if (is_version_of(documented[i].name, call)) {
            return documented[i].codes;
        }
    }
    return NULL;
}

static CUresult random_refusal(const struct sim_call *call) {
    if (call->codes == NULL) {
        return CUDA_SUCCESS;
    }
    uint64_t draw =
        sim_mix(random_refusals.seed ^ sim_mix(++random_refusals.considered + (1ULL << 40)));
    if (draw % random_refusals.rate != 0) {
        return CUDA_SUCCESS;
    }
    size_t count = 0;
    while (count < MOST_CODES && call->codes[count] != 0) {
        count++;
    }
    return (CUresult)call->codes[sim_mix(draw) % count];
}

// One entry of SIM_FAIL: [name@]n[+][:code]; the n-th call (of that name, or of all) fails.
static bool refuses(const char *entry, const struct sim_call *call, unsigned long long all,
                    CUresult *code) {
    size_t length = strcspn(entry, ",");
    const char *at = memchr(entry, '@', length);
    if (at != NULL && !sim_stands_for(entry, (size_t)(at - entry), call->name)) {
        return false;
    }
    char *end = NULL;
    unsigned long long wanted = strtoull(at != NULL ? at + 1 : entry, &end, 10);
    unsigned long long number = at != NULL ? call->count : all;
    bool onwards = *end == '+';
    end += onwards;
    *code = *end == ':' ? (CUresult)strtoul(end + 1, NULL, 10) : CUDA_ERROR_OUT_OF_MEMORY;
    return number == wanted || (onwards && number > wanted);
}

CUresult sim_refusal_of(struct sim_call *call) {
    static unsigned long long all;
    CUresult code = CUDA_SUCCESS;
    if (sim_options.fail == NULL) {
        return CUDA_SUCCESS;
    }
    all++;
    for (const char *entry = sim_options.fail; entry != NULL && *entry != '\0';) {
        if (strncmp(entry, "random:", strlen("random:")) != 0 && refuses(entry, call, all, &code)) {
            return code;
        }
        entry = strchr(entry, ',');
        entry = entry == NULL ? NULL : entry + 1;
    }
    return random_refusal(call);
}
