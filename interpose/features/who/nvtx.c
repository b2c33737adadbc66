/*
 * Makes NVTX ranges tags (BFC_TAGS=nvtx). NVTX, by which a program names what it does, loads an
 * injection: the library that the environment variable NVTX_INJECTION64_PATH names. This library
 * makes itself the injection and calls the one that was set before (the next injection). NVTX is
 * header-only: each library of a program has its own copy, and each copy initializes the injection.
 *
 * The declarations follow NVTX 3 (nvtxDetail/nvtxTypes.h of the CUDA toolkit).
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/atomic.h"
#include "interpose/features/who/tags.h"
#include "interpose/host/c_library.h"
#include "pool/structures/lock.h"

#define PATH_VARIABLE "NVTX_INJECTION64_PATH"
/* the environment variable with the path of the injection that was set before this library */
#define NEXT_VARIABLE "NVTX_NEXT_INJECTION64_PATH"

typedef void function(void);
typedef const void *get_table_function(uint32_t id);

typedef struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_kind;
    uint32_t color;
    int32_t payload_kind, zero;
    uint64_t payload;
    int32_t message_kind; /* enum message: what `message` points to */
    const void *message;
} attributes;

enum message { BYTES = 1, WIDE, REGISTERED };

/* Converts a wide string to UTF-8 (RFC 3629); what does not fit into `size` bytes is cut off. */
static const char *narrow_string(const wchar_t *wide, char *text, size_t size) {
    size_t length = 0;
    for (; wide && *wide && length + 5 <= size; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c < 0x80) {
            text[length++] = (char)c;
            continue;
        }
        int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        text[length++] = (char)("\xc0\xe0\xf0"[more - 1] | (char)(c >> (6 * more)));
        while (more-- > 0)
            text[length++] = (char)(0x80 | (c >> (6 * more) & 0x3f));
    }
    text[length] = '\0';
    return text;
}

static uint32_t name_of_wide(const wchar_t *wide) {
    char text[64];
    return bfc_tags_name(narrow_string(wide, text, sizeof text));
}

/* The names of strings that the program has registered with NVTX, by the strings' handles. The
 * handles come from the next injection if there is one, else from this file. */
enum { STRINGS = 4096 };
static struct {
    const void *handle;
    uint32_t name;
} strings[STRINGS];
static size_t string_count;
static struct pool_lock lock; /* guards the registered strings and the initialization below */

static void remember_string(const void *handle, uint32_t name) {
    pool_lock(&lock);
    if (string_count < STRINGS) {
        strings[string_count].handle = handle;
        strings[string_count++].name = name;
    }
    pool_unlock(&lock);
}

static uint32_t name_of_string(const void *handle) {
    uint32_t name = 0;
    pool_lock(&lock);
    for (size_t i = string_count; i-- > 0 && !name;)
        if (strings[i].handle == handle)
            name = strings[i].name;
    pool_unlock(&lock);
    return name;
}

static uint32_t name_of(const attributes *event) {
    int kind = event && event->size >= sizeof *event ? event->message_kind : 0;
    uint32_t name = kind == BYTES        ? bfc_tags_name(event->message)
                    : kind == WIDE       ? name_of_wide(event->message)
                    : kind == REGISTERED ? name_of_string(event->message)
                                         : 0;
    return name ? name : bfc_tags_name("(range)");
}

enum module { CORE = 1, DOMAINS = 5 };

#define CALLS(X)                                                                                   \
    X(CORE, 4, start_event, uint64_t, (const attributes *event), (event))                          \
    X(CORE, 5, start_bytes, uint64_t, (const char *text), (text))                                  \
    X(CORE, 6, start_wide, uint64_t, (const wchar_t *text), (text))                                \
    X(CORE, 7, end, void, (uint64_t id), (id))                                                     \
    X(CORE, 8, push_event, int, (const attributes *event), (event))                                \
    X(CORE, 9, push_bytes, int, (const char *text), (text))                                        \
    X(CORE, 10, push_wide, int, (const wchar_t *text), (text))                                     \
    X(CORE, 11, pop, int, (void), ())                                                              \
    X(DOMAINS, 2, domain_start, uint64_t, (void *domain, const attributes *event),                 \
      (domain, event))                                                                             \
    X(DOMAINS, 3, domain_end, void, (void *domain, uint64_t id), (domain, id))                     \
    X(DOMAINS, 4, domain_push, int, (void *domain, const attributes *event), (domain, event))      \
    X(DOMAINS, 5, domain_pop, int, (void *domain), (domain))                                       \
    X(DOMAINS, 10, string_bytes, void *, (void *domain, const char *text), (domain, text))         \
    X(DOMAINS, 11, string_wide, void *, (void *domain, const wchar_t *text), (domain, text))       \
    X(DOMAINS, 12, domain_bytes, void *, (const char *text), (text))                               \
    X(DOMAINS, 13, domain_wide, void *, (const wchar_t *text), (text))

/* The functions of the next injection, the one that was set before this library. NULL: there is no
 * next injection, or it has no function for that call. */
static struct {
#define FIELD(module, number, name, result, parameters, arguments) result(*name) parameters;
    CALLS(FIELD)
#undef FIELD
} next;

/* The last number that was given to a range, string or domain as its id, where there is no next
 * injection to give ids. */
static uint64_t last_id;

static uint64_t new_id(void) {
    return bfc_fetch_add_relaxed(&last_id, 1) + 1;
}

static uint64_t start_range(uint64_t id, uint32_t name) {
    if (id)
        bfc_tags_start(id, name);
    return id;
}

/* Starts a range. If another injection was set before this library, it is called first, because the
 * id that it returns becomes the range's. */
#define STARTED(call, arguments, name) start_range(next.call ? next.call arguments : new_id(), name)

static uint64_t on_start_event(const attributes *event) {
    return STARTED(start_event, (event), name_of(event));
}

static uint64_t on_start_bytes(const char *text) {
    return STARTED(start_bytes, (text), bfc_tags_name(text));
}

static uint64_t on_start_wide(const wchar_t *text) {
    return STARTED(start_wide, (text), name_of_wide(text));
}

static uint64_t on_domain_start(void *domain, const attributes *event) {
    return STARTED(domain_start, (domain, event), name_of(event));
}

static void on_end(uint64_t id) {
    bfc_tags_end(id);
    if (next.end)
        next.end(id);
}

static void on_domain_end(void *domain, uint64_t id) {
    bfc_tags_end(id);
    if (next.domain_end)
        next.domain_end(domain, id);
}

/* Pushes a range and returns its level of nesting. If another injection was set before this
 * library, the level is that injection's, which counts the ranges of the domain; else it is the
 * number of all ranges that the thread had pushed before. */
#define PUSHED(call, arguments, domain, name)                                                      \
    int level = (int)bfc_tags_push((uint64_t)(domain), name);                                      \
    return next.call ? next.call arguments : level

static int on_push_event(const attributes *event) {
    PUSHED(push_event, (event), 0, name_of(event));
}

static int on_push_bytes(const char *text) {
    PUSHED(push_bytes, (text), 0, bfc_tags_name(text));
}

static int on_push_wide(const wchar_t *text) {
    PUSHED(push_wide, (text), 0, name_of_wide(text));
}

static int on_domain_push(void *domain, const attributes *event) {
    PUSHED(domain_push, (domain, event), domain, name_of(event));
}

static int on_pop(void) {
    int level = bfc_tags_pop(0) ? 0 : -1;
    return next.pop ? next.pop() : level;
}

static int on_domain_pop(void *domain) {
    int level = bfc_tags_pop((uint64_t)domain) ? 0 : -1;
    return next.domain_pop ? next.domain_pop(domain) : level;
}

static void *string_of(void *handle, uint32_t name) {
    handle = handle ? handle : (void *)new_id();
    remember_string(handle, name);
    return handle;
}

static void *on_string_bytes(void *domain, const char *text) {
    return string_of(next.string_bytes ? next.string_bytes(domain, text) : NULL,
                     bfc_tags_name(text));
}

static void *on_string_wide(void *domain, const wchar_t *text) {
    return string_of(next.string_wide ? next.string_wide(domain, text) : NULL, name_of_wide(text));
}

static void *on_domain_bytes(const char *text) {
    return next.domain_bytes ? next.domain_bytes(text) : (void *)new_id();
}

static void *on_domain_wide(const wchar_t *text) {
    return next.domain_wide ? next.domain_wide(text) : (void *)new_id();
}

static const struct {
    enum module module;
    unsigned number;
    function *ours, **next;
} calls[] = {
#define ROW(module, number, name, result, parameters, arguments)                                   \
    {module, number, (function *)on_##name, (function **)&next.name},
    CALLS(ROW)
#undef ROW
};

enum { CALL_COUNT = sizeof calls / sizeof calls[0] };

/* What NVTX passes to an injection that it initializes. For a module of NVTX, `find` sets `table`
 * to an array with an entry for each function, by number: the address of the pointer through which
 * NVTX calls the function. */
struct tables {
    size_t size;
    int (*find)(uint32_t module, function ****table, unsigned *size);
};

/* Returns the address of the pointer through which NVTX calls the function; NULL: this version of
 * NVTX has no such function. */
static function **place_of(const struct tables *tables, size_t call) {
    function ***table;
    unsigned size;
    bool found = tables->find(calls[call].module, &table, &size) && calls[call].number < size;
    return found ? table[calls[call].number] : NULL;
}

static void read_places(const struct tables *tables, function **found) {
    for (size_t i = 0; i < CALL_COUNT; i++) {
        function **place = place_of(tables, i);
        found[i] = place ? *place : NULL;
    }
}

/*
 * Makes NVTX call our functions. `before` has the values that NVTX's function pointers had before
 * the next injection was initialized. A pointer that differs now was set by that injection, and our
 * function calls what it points to. A program may contain several copies of NVTX, but we keep only
 * one next function for each call, that of the first copy. So in a later copy we leave a pointer
 * alone that the next injection has set to another function.
 */
static void take_places(const struct tables *tables, function *const *before, bool first) {
    for (size_t i = 0; i < CALL_COUNT; i++) {
        function **place = place_of(tables, i);
        function *replaced = place && *place != before[i] ? *place : NULL;
        if (first)
            *calls[i].next = replaced;
        if (place && replaced == *calls[i].next)
            *place = calls[i].ours;
    }
}

/* The entry point of this library as an NVTX injection, which each copy of NVTX calls once. Returns
 * 0 if it failed, and NVTX makes no more calls then. Thread-safe. */
int InitializeInjectionNvtx2(get_table_function *get_table);

static const char *own_path(void) {
    const struct link_map *object = bfc_object_of(__extension__(void *) own_path);
    return object ? object->l_name : "";
}

/* Initializes the NVTX injection that was set before this library, if any. False: that failed. */
static bool begin_next(get_table_function *get_table) {
    const char *path = getenv(NEXT_VARIABLE);
    int (*initialize)(get_table_function *);
    if (!path || !*path)
        return true;
    void *library = bfc_real_dlopen(path, RTLD_LAZY);
    *(void **)&initialize = library ? bfc_real_dlsym(library, "InitializeInjectionNvtx2") : NULL;
    return initialize && initialize != InitializeInjectionNvtx2 && initialize(get_table);
}

static bool wants_ranges(void) {
    const char *wanted = getenv("BFC_TAGS");
    return wanted && strcmp(wanted, "nvtx") == 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(get_table_function *get_table) {
    enum { CALLBACKS = 1 };
    static bool begun;
    const struct tables *tables = get_table ? get_table(CALLBACKS) : NULL;
    function *before[CALL_COUNT];
    if (!tables || tables->size < sizeof *tables || !wants_ranges())
        return 0;
    read_places(tables, before);
    if (!begin_next(get_table))
        return 0;
    pool_lock(&lock);
    take_places(tables, before, !begun);
    begun = true;
    pool_unlock(&lock);
    return 1;
}

/* Runs when this library is loaded, because NVTX reads the environment at the program's first NVTX
 * call, which may come before any CUDA call. The injection of compute-sanitizer is not replaced,
 * since under that tool this library serves no allocations. */
__attribute__((constructor)) static void become_injection(void) {
    char path[PATH_MAX];
    if (!wants_ranges())
        return;
    const char *set = getenv(PATH_VARIABLE);
    if ((set && strstr(set, "sanitizer-collection")) || !realpath(own_path(), path) ||
        (set && strcmp(set, path) == 0))
        return;
    setenv(NEXT_VARIABLE, set ? set : "", 1);
    setenv(PATH_VARIABLE, path, 1);
}
