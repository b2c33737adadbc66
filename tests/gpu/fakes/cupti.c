// As much of CUPTI as tests/gpu/observer.c uses, over the stand-in GPU: each launch, copy and set
// that is called has run. FAKE_RAN: the name of another call that began work too.
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static CUpti_CallbackFunc told;
static CUpti_BuffersCallbackRequestFunc ask_buffer;
static CUpti_BuffersCallbackCompleteFunc give_buffer;
static uint32_t calls; // atomic

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards what follows
enum { FUNCTIONS = 1024, RECORD = 512 };
static const char *functions[FUNCTIONS];
static uint8_t *buffer;
static size_t buffer_size, used;

static uint32_t number_of(const char *name) {
    uint32_t number = 1;
    while (number < FUNCTIONS - 1 && functions[number] && strcmp(functions[number], name) != 0)
        number++;
    functions[number] = name;
    return number;
}

static void hand_over(void) {
    if (buffer)
        give_buffer(NULL, 0, buffer, buffer_size, used);
    buffer = NULL;
    used = 0;
}

static void add_record(CUpti_ActivityKind kind, uint32_t call) {
    size_t most = 0;
    if (buffer && used + RECORD > buffer_size)
        hand_over();
    if (!buffer)
        ask_buffer(&buffer, &buffer_size, &most);
    CUpti_Activity *record = (CUpti_Activity *)(buffer + used);
    memset(record, 0, RECORD);
    record->kind = kind;
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        ((CUpti_ActivityKernel4 *)record)->correlationId = call;
    else if (kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        ((CUpti_ActivityMemcpy3 *)record)->correlationId = call;
    else
        ((CUpti_ActivityMemset2 *)record)->correlationId = call;
    used += RECORD;
}

static int begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static void note_work(const char *name, uint32_t call) {
    const char *another = getenv("FAKE_RAN");
    if (begins(name, "cuLaunchKernel") || begins(name, "cuGraphLaunch") ||
        (another && strcmp(name, another) == 0))
        add_record(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, call);
    else if (begins(name, "cuMemcpy"))
        add_record(CUPTI_ACTIVITY_KIND_MEMCPY, call);
    else if (begins(name, "cuMemset"))
        add_record(CUPTI_ACTIVITY_KIND_MEMSET, call);
}

static void tell(const char *name) {
    uint32_t call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    uint32_t function = number_of(name);
    pthread_mutex_unlock(&lock);
    CUpti_CallbackData data = {
        .callbackSite = CUPTI_API_ENTER, .functionName = name, .correlationId = call};
    told(NULL, CUPTI_CB_DOMAIN_DRIVER_API, function, &data);
    pthread_mutex_lock(&lock);
    note_work(name, call);
    pthread_mutex_unlock(&lock);
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                           void *data) {
    (void)data;
    *subscriber = NULL;
    told = callback;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain) {
    (void)enable, (void)subscriber, (void)domain;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*watch)(void (*)(const char *)) = driver ? dlsym(driver, "sim_tool_watch") : NULL;
    ask_buffer = request;
    give_buffer = complete;
    if (watch)
        watch(tell);
    return watch ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    (void)kind;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *records, size_t size, CUpti_Activity **record) {
    uint8_t *next = *record ? (uint8_t *)*record + RECORD : records;
    *record = (CUpti_Activity *)next;
    return next < records + size ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    pthread_mutex_lock(&lock);
    hand_over();
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
