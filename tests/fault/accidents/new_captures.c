/*
 * Captures begun by calls that are newer than the headers here, or unheard of: what another thread
 * allocates and frees meanwhile does not break them, and comes out as it should.
 */
#include <semaphore.h>

#include "tests/conformance/gpu.h"

enum { SLOW_MS = 20 };

static const size_t bytes = 4 * MIB;

static CUstream capturing, busy, idle;
static CUgraph graph;
static CUcontext context;

/* ---- the calls, by each look-up ---- */

typedef CUresult begin_again(CUstream, CUstreamCaptureMode, CUgraph, void *, void *);
typedef CUresult begin_graphics(CUstream, void *);
typedef CUresult end_graphics(CUstream);
typedef CUresult begin_unheard_of(CUstream, long, long, long, long, long, long, long, long, long);

static struct {
    begin_again *begin_again;
    begin_graphics *begin_graphics;
    end_graphics *end_graphics;
    begin_unheard_of *begin_unheard_of;
} calls;

static void *find(const char *name, bool by_driver) {
    void *found = NULL;
    char twin[64];
    snprintf(twin, sizeof twin, "%s%s", name, by_driver ? "" : "_ptsz");
    if (by_driver)
        MUST(cuGetProcAddress(name, &found, 99000, 0, NULL));
    else
        found = dlsym(RTLD_DEFAULT, twin);
    if (!found)
        skip("the stand-in GPU, which has the newer calls");
    return found;
}

static void find_calls(bool by_driver) {
    *(void **)&calls.begin_again = find("cuStreamBeginRecaptureToGraph", by_driver);
    *(void **)&calls.begin_graphics = find("cuStreamBeginCaptureToCig", by_driver);
    *(void **)&calls.end_graphics = find("cuStreamEndCaptureToCig", by_driver);
    *(void **)&calls.begin_unheard_of = find("cuStreamBeginUnheardOfCapture", by_driver);
    tell("found once more it is the same", __extension__(void *) calls.begin_unheard_of ==
                                               find("cuStreamBeginUnheardOfCapture", by_driver));
}

/* ---- what another thread does meanwhile ---- */

static void *churn(void *unused) {
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 4; i++) {
        void *old = new_block(bytes);
        slow_fill(busy, old, bytes, 1, SLOW_MS);
        MUST(release(old));
        void *fresh = new_block(bytes);
        fill(idle, fresh, bytes, 2);
        MUST(cuStreamSynchronize(busy));
        MUST(cuStreamSynchronize(idle));
        tell("  a new block is intact", holds(fresh, bytes, 2));
        MUST(release(fresh));
    }
    return unused;
}

/* ---- captures ---- */

static void capture_again(void) {
    CUgraph out = NULL;
    puts("into a graph that is there");
    MUST(calls.begin_again(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, graph, NULL, NULL));
    in_thread(churn, NULL);
    spin(capturing, 1);
    say("  end", end_capture(capturing, &out));
    tell("  it is the graph", out == graph);
}

static void capture_graphics(void) {
    int parameters = 0;
    puts("for graphics");
    MUST(calls.begin_graphics(capturing, &parameters));
    in_thread(churn, NULL);
    say("  end", (int)calls.end_graphics(capturing));
}

static void capture_unheard_of(void) {
    CUgraph out = NULL;
    puts("unheard of");
    MUST(calls.begin_unheard_of(capturing, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    in_thread(churn, NULL);
    spin(capturing, 1);
    int code = end_capture(capturing, &out);
    say("  end", code);
    if (code == 0)
        MUST(cuGraphDestroy(out));
}

/* What was freed is there for calls past any pool, whatever may still capture. */
static void take_cached(void) {
    void *most = NULL;
    size_t free_bytes, total;
    MUST(memory_info(&free_bytes, &total));
    say("malloc of most", allocate(&most, total / 8 * 5));
    MUST(release(most));
    say("cudaMallocAsync of most", allocate_async(&most, total / 8 * 5, idle));
    MUST(release_async(most, idle));
    MUST(cuStreamSynchronize(idle));
}

static void make_graph(void) {
    MUST(begin_capture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    spin(capturing, 1);
    MUST(end_capture(capturing, &graph));
}

/* A context in which captures for graphics are allowed. */
static void make_context(void) {
    CUctxCigParam shared = {0};
    CUctxCreateParams how = {.cigParams = &shared};
    CUresult (*create)(CUcontext *, CUctxCreateParams *, unsigned, CUdevice);
    MUST(cuInit(0));
    MUST(cuGetProcAddress("cuCtxCreate", (void **)&create, 12050, 0, NULL));
    MUST(create(&context, &how, 0, 0));
}

int main(void) {
    make_context();
    kernel("fill");
    capturing = new_stream();
    busy = new_stream();
    idle = new_stream();
    make_graph();
    void *cached = NULL; /* before what nobody knows of: it is a pool's, and given back */
    MUST(allocate(&cached, 640 * MIB));
    MUST(release(cached));
    for (int by_driver = 0; by_driver < 2; by_driver++) {
        find_calls(by_driver);
        capture_again();
        capture_graphics();
    }
    capture_unheard_of();
    capture_again();
    capture_unheard_of();
    churn(NULL);
    take_cached();
    return 0;
}
