/* Python frames by CPython's public C interface, none of which is linked. */
#include "interpose/stacks/python.h"

#include <link.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/host/c_library.h"

typedef void object; /* PyObject and its like */

/* Name, result, parameters. Those after the first line came later than 3.9, or left. */
#define CALLS(X)                                                                                   \
    X(Py_IsInitialized, int, (void))                                                               \
    X(PyGILState_GetThisThreadState, void *, (void))                                               \
    X(_PyThreadState_UncheckedGet, void *, (void))                                                 \
    X(PyErr_Occurred, object *, (void))                                                            \
    X(PyErr_Clear, void, (void))                                                                   \
    X(PyEval_GetFrame, object *, (void))                                                           \
    X(PyFrame_GetBack, object *, (object *))                                                       \
    X(PyFrame_GetCode, object *, (object *))                                                       \
    X(PyFrame_GetLineNumber, int, (object *))                                                      \
    X(PyObject_GetAttrString, object *, (object *, const char *))                                  \
    X(PyUnicode_AsUTF8AndSize, const char *, (object *, long *))                                   \
    X(Py_IncRef, void, (object *))                                                                 \
    X(Py_DecRef, void, (object *))

static struct python {
#define FIELD(name, result, parameters) result(*name) parameters;
    CALLS(FIELD)
#undef FIELD
    int (*is_ending)(void);  /* may be NULL */
    int (*gc_disable)(void); /* may be NULL */
    int (*gc_enable)(void);
} python;

/* The interpreter may be loaded after CUDA: it is looked for until it is there. */
static uint32_t state; /* atomic: whether `python` is filled */
enum { UNKNOWN, FILLING, FOUND };
static uint64_t looked_at; /* atomic: objects loaded when it was last looked for */

struct search {
    struct link_map object;
    uint64_t loaded;
    bool found;
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *context) {
    struct search *search = context;
    (void)size;
    search->loaded = info->dlpi_adds;
    if (search->loaded == bfc_load_relaxed(&looked_at))
        return 1;
    search->found = bfc_object_of_walk(info, &search->object) &&
                    bfc_object_exports(&search->object, "PyFrame_GetBack");
    return search->found;
}

static bool fill(const struct link_map *from) {
    const char *version;
    bool all = true;
#define FIND(name, result, parameters)                                                             \
    *(void **)&python.name = bfc_object_function(from, #name, &version);                           \
    all = all && python.name;
    CALLS(FIND)
#undef FIND
    *(void **)&python.is_ending = bfc_object_function(from, "Py_IsFinalizing", &version);
    if (!python.is_ending)
        *(void **)&python.is_ending = bfc_object_function(from, "_Py_IsFinalizing", &version);
    *(void **)&python.gc_disable = bfc_object_function(from, "PyGC_Disable", &version);
    *(void **)&python.gc_enable = bfc_object_function(from, "PyGC_Enable", &version);
    return all;
}

static bool look_for_python(void) {
    struct search search = {.found = false};
    dl_iterate_phdr(visit_object, &search);
    bfc_store_relaxed(&looked_at, search.loaded);
    uint32_t was = UNKNOWN;
    if (!search.found || !bfc_compare_exchange_acquire(&state, &was, FILLING))
        return false;
    if (!fill(&search.object))
        return false; /* for good: a stub, or another version's */
    bfc_store_release(&state, FOUND);
    return true;
}

/* Whether this thread runs Python code now, and may look at it. */
static bool may_look(void) {
    if (!python.Py_IsInitialized() || (python.is_ending && python.is_ending()))
        return false;
    const void *running = python._PyThreadState_UncheckedGet();
    return running && running == python.PyGILState_GetThisThreadState() && !python.PyErr_Occurred();
}

/* With a reference to drop; NULL: it is no text. */
static object *text_of(object *code, const char *name, const char **text) {
    object *held = python.PyObject_GetAttrString(code, name);
    *text = held ? python.PyUnicode_AsUTF8AndSize(held, NULL) : NULL;
    return held;
}

static bool visit_frame(object *frame, bfc_python_visit *visit, void *context) {
    object *code = python.PyFrame_GetCode(frame);
    const char *function, *file;
    object *held_function = text_of(code, "co_name", &function);
    object *held_file = text_of(code, "co_filename", &file);
    bool more =
        function && file && visit(context, function, file, python.PyFrame_GetLineNumber(frame));
    python.Py_DecRef(held_file);
    python.Py_DecRef(held_function);
    python.Py_DecRef(code);
    return more;
}

static void walk_frames(bfc_python_visit *visit, void *context) {
    object *frame = python.PyEval_GetFrame();
    python.Py_IncRef(frame);
    while (frame && visit_frame(frame, visit, context)) {
        object *back = python.PyFrame_GetBack(frame);
        python.Py_DecRef(frame);
        frame = back;
    }
    python.Py_DecRef(frame);
    if (python.PyErr_Occurred())
        python.PyErr_Clear(); /* ours: there was none before */
}

void bfc_walk_python(bfc_python_visit *visit, void *context) {
    if (UNLIKELY(bfc_load_acquire(&state) != FOUND) && !look_for_python())
        return;
    if (!may_look())
        return;
    bool collects = python.gc_disable && python.gc_enable && python.gc_disable();
    walk_frames(visit, context);
    if (collects)
        python.gc_enable();
}
