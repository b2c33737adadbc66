/* An NVTX injection: says at exit which of its calls came, and gives out ids and handles of its
 * own. */
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>

static int pushed, popped, started, ended, strings, domains;

static int push(const char *text) {
    (void)text;
    return pushed++;
}

static int pop(void) {
    return popped++ < pushed ? 0 : -1;
}

static nvtxRangeId_t start(const char *text) {
    (void)text;
    return 7000 + (nvtxRangeId_t)started++;
}

static void end(nvtxRangeId_t id) {
    ended += id == 7000;
}

static nvtxStringHandle_t string(nvtxDomainHandle_t domain, const char *text) {
    (void)domain, (void)text;
    strings++;
    return (nvtxStringHandle_t)&strings;
}

static nvtxDomainHandle_t domain(const char *text) {
    (void)text;
    domains++;
    return (nvtxDomainHandle_t)&domains;
}

static void set(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, unsigned id,
                NvtxFunctionPointer function) {
    NvtxFunctionTable table;
    unsigned size;
    if (callbacks->GetModuleFunctionTable(module, &table, &size) && id < size)
        *table[id] = function;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, (NvtxFunctionPointer)push);
    set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, (NvtxFunctionPointer)pop);
    set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, (NvtxFunctionPointer)start);
    set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, (NvtxFunctionPointer)end);
    set(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA,
        (NvtxFunctionPointer)string);
    set(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA,
        (NvtxFunctionPointer)domain);
    return 1;
}

__attribute__((destructor)) static void tell(void) {
    printf("%d pushed, %d popped, %d started, %d ended, %d strings, %d domains\n", pushed, popped,
           started, ended, strings, domains);
}
