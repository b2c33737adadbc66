#include "interpose/features/who/stacks/python.h"

#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/features/who/stacks/objects.h"
#include "interpose/host/c_library.h"

/*
 * Python frames are read from CPython's own structures, without the GIL, because most programs
 * release the GIL around CUDA's calls (PyTorch, Numba, ctypes). The calling thread's own chain of
 * frames does not change while the thread is here, and it keeps all objects alive to which it
 * refers. The offsets differ between versions (3.11, 3.12, …), but are the same in all releases of
 * one version: they are from Include/internal/pycore_frame.h and other headers of each version.
 * Only tested versions are listed (docs/who.md).
 */

#define NONE SIZE_MAX

struct layout {
    const char *version; /* what Py_GetVersion's text begins with */
    /* The following are offsets in bytes from the start of CPython's structures. */
    size_t thread_frame;  /* thread state: a pointer to the innermost frame, or to the C frame that
                             points there */
    size_t c_frame_frame; /* C frame: a pointer to the innermost frame; NONE in versions without C
                             frames */
    size_t frame_code, frame_previous, frame_instruction, frame_owner;
    size_t code_file, code_function, code_first_traceable, code_instructions;
    size_t text_state, text_ascii; /* a Python string's flags, and its bytes if all are ASCII */
};

static const struct layout layouts[] = {
    {"3.11.", 56, 8, 32, 48, 56, 69, 112, 128, 168, 184, 32, 48},
    {"3.12.", 56, 0, 0, 8, 56, 70, 112, 128, 176, 192, 32, 40},
    {"3.13.", 72, NONE, 0, 8, 56, 70, 112, 128, 184, 200, 32, 40},
    {"3.14.", 72, NONE, 0, 8, 56, 74, 112, 128, 192, 208, 32, 40},
};

/* Returns the layout of CPython's structures for what Py_GetVersion returns; NULL if it is not
 * known. */
static const struct layout *find_layout(const char *version) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (strncmp(version, layouts[i].version, strlen(layouts[i].version)) == 0 &&
            !strstr(version, "free-threading")) /* in builds without the GIL, objects have a larger
                                                   header */
            return &layouts[i];
    return NULL;
}

typedef void object; /* a PyObject, or a type derived from it */

/* CPython's functions that all versions from 3.9 on have: name, result, parameters. They are looked
 * up at run time, so that the library does not depend on CPython. */
#define CALLS(X)                                                                                   \
    X(Py_IsInitialized, int, (void))                                                               \
    X(Py_GetVersion, const char *, (void))                                                         \
    X(PyCode_Addr2Line, int, (object *, int))                                                      \
    X(PyGILState_GetThisThreadState, void *, (void))                                               \
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
    void *(*running)(void);      /* PyThreadState_GetUnchecked; before 3.13 the function has another
                                    name */
    const object *code_type;     /* the type PyCode_Type, by which a code object is recognized */
    const struct layout *layout; /* where CPython's fields are; NULL: not known for this version */
    /* is_ending, gc_disable and gc_enable are NULL in Python versions without these functions. */
    int (*is_ending)(void);
    int (*gc_disable)(void), (*gc_enable)(void);
} python;

/* Whether the interpreter was found in the process. A program may load it after CUDA, so the search
 * is repeated until it is found. */
static uint32_t state;
enum { UNKNOWN, FILLING, FOUND, GONE };
static uint64_t object_of_python; /* address of the interpreter's struct link_map, once found */

static void *find_either(const struct link_map *from, const char *name, const char *former) {
    const char *version;
    void *found = bfc_object_function(from, name, &version);
    return found ? found : bfc_object_function(from, former, &version);
}

static bool fill_layout(const struct link_map *from) {
    const char *version;
    bool all = true;
#define FIND(name, result, parameters)                                                             \
    *(void **)&python.name = bfc_object_function(from, #name, &version);                           \
    all = all && python.name;
    CALLS(FIND)
#undef FIND
    *(void **)&python.running =
        find_either(from, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
    *(void **)&python.is_ending = find_either(from, "Py_IsFinalizing", "_Py_IsFinalizing");
    *(void **)&python.gc_disable = bfc_object_function(from, "PyGC_Disable", &version);
    *(void **)&python.gc_enable = bfc_object_function(from, "PyGC_Enable", &version);
    python.code_type = bfc_object_function(from, "PyCode_Type", &version);
    all = all && python.running && python.code_type;
    if (all)
        python.layout = find_layout(python.Py_GetVersion());
    return all;
}

/* Fills in `python` with the functions of a loaded object that exports PyFrame_GetBack. If the
 * object lacks another function that is needed, `state` stays at FILLING, which ends the search for
 * good. */
static void find_in(const struct link_map *map) {
    uint32_t was = UNKNOWN;
    if (!bfc_compare_exchange_acquire(&state, &was, FILLING) || !fill_layout(map))
        return;
    object_of_python = (uint64_t)map;
    bfc_store_release(&state, FOUND);
}

/* Looks for the Python interpreter among the objects that were loaded when the process began, and
 * does so only once. */
static void look_at_start(void) {
    static bool looked; /* atomic: whether the objects loaded at the start were searched */
    const struct link_map *map =
        bfc_exchange_relaxed(&looked, true) ? NULL : bfc_exporter_at_start("PyFrame_GetBack");
    if (map)
        find_in(map);
}

enum { LOOKED_AT = 256 };
/* Hashes of the addresses of loaded objects that are known not to be the Python interpreter, as a
 * cache. Elements are atomic; 0: empty. */
static uint64_t looked_at[LOOKED_AT];

static bool offers_python(struct bfc_readable *readable, const struct bfc_object *place) {
    uint64_t key = (place->map ^ place->end) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t *slot = &looked_at[key / (UINT64_MAX / LOOKED_AT + 1)];
    if (bfc_load_relaxed(slot) == key)
        return false;
    bool offers = bfc_object_offers(readable, place, "PyFrame_GetBack");
    if (!offers)
        bfc_store_relaxed(slot, key);
    return offers;
}

/* Looks for the Python interpreter among the objects of the call stack, where it is whenever Python
 * code is running. */
static NOINLINE void look_along(const uint64_t *calls, size_t count) {
    struct bfc_readable readable;
    struct bfc_object place = {0};
    bfc_readable_begin(&readable);
    look_at_start();
    for (size_t i = 0; i < count && bfc_load_relaxed(&state) == UNKNOWN; i++)
        if (calls[i] - place.start >= place.end - place.start &&
            bfc_object_at(&readable, calls[i], &place) && offers_python(&readable, &place))
            find_in((const struct link_map *)place.map);
}

/* Whether the Python interpreter is still loaded; a program may unload one that it embeds. */
static NOINLINE bool is_still_there(void) {
    struct bfc_readable readable;
    struct bfc_object place;
    bfc_readable_begin(&readable);
    bool there = bfc_object_at(&readable, (uint64_t)python.code_type, &place) &&
                 place.map == object_of_python;
    if (!there)
        /* the program has unloaded the interpreter, which is not looked for again */
        bfc_store_relaxed(&state, GONE);
    return there;
}

static bool has_python(const uint64_t *calls, size_t count) {
    if (UNLIKELY(bfc_load_relaxed(&state) == UNKNOWN))
        look_along(calls, count);
    return bfc_load_acquire(&state) == FOUND && is_still_there();
}

static const char *field_at(const void *structure, size_t offset) {
    return (const char *)structure + offset;
}

static void *pointer_at(const void *structure, size_t offset) {
    void *pointer;
    memcpy(&pointer, field_at(structure, offset), sizeof pointer);
    return pointer;
}

/* The bits `compact` and `ascii` in the flags of a Python string. Below them are the two bits for
 * interning and the three for the width of the characters. */
enum { TEXT_IS_ASCII = 3 << 5 };

static const char *text_at(const struct layout *layout, const void *code, size_t offset) {
    const void *text = pointer_at(code, offset);
    uint32_t flags;
    memcpy(&flags, field_at(text, layout->text_state), sizeof flags);
    return (flags & TEXT_IS_ASCII) == TEXT_IS_ASCII ? field_at(text, layout->text_ascii) : "?";
}

/* Frames with this owner belong to the Python interpreter itself and to no Python function. */
enum { OWNER_C_STACK = 3 };

/* From 3.14 on, the lowest two bits of a frame's reference to its code are flags. */
static void *code_of(const struct layout *layout, const void *frame) {
    uintptr_t reference;
    memcpy(&reference, field_at(frame, layout->frame_code), sizeof reference);
    return (void *)(reference & ~(uintptr_t)3);
}

/* Returns the offset in bytes of a Python frame's current instruction in its code; -1 if the frame
 * is not set up yet, or belongs to no Python function. */
static int64_t offset_in(const struct layout *layout, const void *frame, const void *code) {
    int32_t first;
    memcpy(&first, field_at(code, layout->code_first_traceable), sizeof first);
    int64_t offset = (const char *)pointer_at(frame, layout->frame_instruction) -
                     field_at(code, layout->code_instructions);
    bool none =
        *field_at(frame, layout->frame_owner) == OWNER_C_STACK || offset < (int64_t)first * 2;
    return none ? -1 : offset;
}

static bool is_code(const void *code) {
    /* A Python object begins with its reference count, which its type follows. */
    return code && pointer_at(code, sizeof(intptr_t)) == python.code_type;
}

static const void *innermost_frame(const struct layout *layout, const void *thread) {
    const void *first = pointer_at(thread, layout->thread_frame);
    return first && layout->c_frame_frame != NONE ? pointer_at(first, layout->c_frame_frame)
                                                  : first;
}

static void walk_by_layout(const void *thread, bfc_python_visit *visit, void *context) {
    const struct layout *layout = python.layout;
    const void *frame = innermost_frame(layout, thread);
    for (bool more = true; frame && more; frame = pointer_at(frame, layout->frame_previous)) {
        void *code = code_of(layout, frame);
        int64_t offset = is_code(code) ? offset_in(layout, frame, code) : -1;
        if (offset >= 0)
            more = visit(context, text_at(layout, code, layout->code_function),
                         text_at(layout, code, layout->code_file),
                         python.PyCode_Addr2Line(code, (int)offset));
    }
}

/* Whether the calling thread, whose Python thread state this is, may call Python's C interface: it
 * holds the GIL, and no exception is set that the calls could replace. */
static bool may_call(const void *thread) {
    return python.running() == thread && !python.PyErr_Occurred();
}

/* Returns an attribute of a Python object, with a reference that the caller drops, or NULL. `text`
 * is set to the attribute's string; to NULL if the attribute is no string. */
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
        /* clears an error that this walk has caused, since none was set before the walk */
        python.PyErr_Clear();
}

static void walk_by_interface(bfc_python_visit *visit, void *context) {
    bool collects = python.gc_disable && python.gc_enable && python.gc_disable();
    walk_frames(visit, context);
    if (collects)
        python.gc_enable();
}

void bfc_walk_python(const uint64_t *calls, size_t count, bfc_python_visit *visit, void *context) {
    if (!has_python(calls, count) || !python.Py_IsInitialized() ||
        (python.is_ending && python.is_ending()))
        return;
    const void *thread = python.PyGILState_GetThisThreadState();
    if (thread && python.layout)
        walk_by_layout(thread, visit, context);
    else if (thread && may_call(thread))
        walk_by_interface(visit, context);
}
