#include "tools/symbols/source_lines.h"

#include <stdbool.h>
#include <stdlib.h>

#ifdef BFC_LIBDW
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <search.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/symbols/symbols.h"

/* How many source lines are found at most for one address: the line in the function itself, and one
 * for each function that the compiler has inlined there. */
enum { DEEPEST = 24 };

/* The source lines of an address that was looked up before. They are kept, because a look-up reads
 * all functions of a source file, and many call stacks have the same outer frames. */
struct known {
    uint64_t address;
    size_t count;
    struct source_line lines[];
};

struct source_lines {
    Dwfl *session;
    Dwfl_Module *module;
    /* libdwfl's session places the file at addresses of its own: what is added to an address in the
     * file to get the session's address */
    Dwarf_Addr shift;
    void *known; /* a tree of struct known, made by tsearch */
};

#define LIBDW_CALLS(call)                                                                          \
    call(dwfl_begin) call(dwfl_end) call(dwfl_report_offline) call(dwfl_report_end)                \
        call(dwfl_module_getelf) call(dwfl_module_getdwarf) call(dwfl_module_addrdie)              \
            call(dwfl_module_nextcu) call(dwfl_build_id_find_debuginfo)                            \
                call(dwfl_offline_section_address) call(dwarf_haspc) call(dwarf_getsrc_die)        \
                    call(dwarf_linesrc) call(dwarf_lineno) call(dwarf_getscopes)                   \
                        call(dwarf_getscopes_die) call(dwarf_tag) call(dwarf_diename)              \
                            call(dwarf_attr) call(dwarf_attr_integrate) call(dwarf_formstring)     \
                                call(dwarf_formudata) call(dwarf_getsrcfiles) call(dwarf_filesrc)

#define DECLARE(name) __typeof__(name) *name;
static struct { LIBDW_CALLS(DECLARE) } dw;

static bool load_library(void) {
    static int state; /* 1: libdw is loaded; -1: it cannot be loaded; 0: not tried yet */
    if (state)
        return state > 0;
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    state = library ? 1 : -1;
#define LOOK_UP(name)                                                                              \
    if (state > 0 && !(*(void **)&dw.name = dlsym(library, #name)))                                \
        state = -1;
    LIBDW_CALLS(LOOK_UP)
    return state > 0;
}

/* Returns the callbacks for sessions of libdwfl. They find debug information by build id in the
 * system's folder only; the standard callback (dwfl_standard_find_debuginfo) would also ask servers
 * in the network. */
static const Dwfl_Callbacks *session_callbacks(void) {
    static Dwfl_Callbacks calls;
    calls.find_debuginfo = dw.dwfl_build_id_find_debuginfo;
    calls.section_address = dw.dwfl_offline_section_address;
    return &calls;
}

static int open_regular(const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file >= 0 && (fstat(file, &status) || !S_ISREG(status.st_mode))) {
        close(file);
        file = -1;
    }
    return file;
}

static bool read_file(struct source_lines *lines, const char *path) {
    Dwarf_Addr unused;
    int file = open_regular(path);
    if (file < 0)
        return false;
    lines->session = dw.dwfl_begin(session_callbacks());
    if (lines->session)
        lines->module = dw.dwfl_report_offline(lines->session, "", path, file);
    /* libdwfl closes the file with the session, but only if it has made a module of the file */
    if (!lines->module) {
        close(file);
        return false;
    }
    dw.dwfl_report_end(lines->session, NULL, NULL);
    return dw.dwfl_module_getelf(lines->module, &lines->shift) &&
           dw.dwfl_module_getdwarf(lines->module, &unused);
}

struct source_lines *source_lines_open(const char *path) {
    struct source_lines *lines = load_library() ? calloc(1, sizeof *lines) : NULL;
    if (lines && read_file(lines, path))
        return lines;
    source_lines_close(lines);
    return NULL;
}

static void free_known(void *node) {
    struct known *known = node;
    for (size_t i = 0; i < known->count; i++)
        free((char *)known->lines[i].function);
    free(known);
}

void source_lines_close(struct source_lines *lines) {
    if (!lines)
        return;
    tdestroy(lines->known, free_known);
    if (lines->session)
        dw.dwfl_end(lines->session);
    free(lines);
}

/* Returns the compilation unit that contains an address of libdwfl's session. Only GCC writes a
 * table of the units' addresses; if the file has none, each unit is searched for the address. */
static Dwarf_Die *unit_of(const struct source_lines *lines, Dwarf_Addr address, Dwarf_Addr *shift) {
    Dwarf_Die *unit = dw.dwfl_module_addrdie(lines->module, address, shift);
    if (unit)
        return unit;
    while ((unit = dw.dwfl_module_nextcu(lines->module, unit, shift)))
        if (dw.dwarf_haspc(unit, address - *shift) == 1)
            return unit;
    return NULL;
}

/* Returns a copy of the function's name, demangled if it is one of C++, to be freed with free();
 * NULL: it has none. */
static char *name_of(Dwarf_Die *function) {
    Dwarf_Attribute attribute;
    const char *linked = NULL;
    if (dw.dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute))
        linked = dw.dwarf_formstring(&attribute);
    char *readable = linked ? symbols_demangle(linked) : NULL;
    if (readable)
        return readable;
    const char *plain = dw.dwarf_diename(function);
    return plain ? strdup(plain) : NULL;
}

static bool number_of(Dwarf_Die *inlined, unsigned attribute_name, Dwarf_Word *number) {
    Dwarf_Attribute attribute;
    return dw.dwarf_attr(inlined, attribute_name, &attribute) &&
           dw.dwarf_formudata(&attribute, number) == 0;
}

/* Returns the source line that calls a function which the compiler has inlined there; all zeros:
 * not known. */
static struct source_line call_of(Dwarf_Die *inlined, Dwarf_Die *unit) {
    Dwarf_Word file, line;
    Dwarf_Files *files;
    struct source_line call = {0};
    if (number_of(inlined, DW_AT_call_file, &file) && number_of(inlined, DW_AT_call_line, &line) &&
        dw.dwarf_getsrcfiles(unit, &files, NULL) == 0) {
        call.file = dw.dwarf_filesrc(files, file, NULL, NULL);
        call.line = call.file ? line : 0;
    }
    return call;
}

static struct source_line find_innermost(Dwarf_Die *unit, Dwarf_Addr address) {
    struct source_line place = {0};
    int number;
    Dwarf_Line *line = dw.dwarf_getsrc_die(unit, address);
    if (line && dw.dwarf_lineno(line, &number) == 0 && number > 0) {
        place.file = dw.dwarf_linesrc(line, NULL, NULL);
        place.line = place.file ? (uint64_t)number : 0;
    }
    return place;
}

/* Stores the DWARF scopes that contain an address in `*scopes`, innermost first, to be freed with
 * free(), and returns how many; below 1: none. dwarf_getscopes finds the innermost scope; but
 * around an inlined function it gives the scopes of the function's definition, so
 * dwarf_getscopes_die then finds those around the place where the function was inlined. */
static int scopes_at(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes) {
    Dwarf_Die *nearest = NULL;
    int count = dw.dwarf_getscopes(unit, address, &nearest);
    if (count > 0)
        count = dw.dwarf_getscopes_die(&nearest[0], scopes);
    free(nearest);
    return count;
}

static size_t find_lines(const struct source_lines *lines, Dwarf_Addr address,
                         struct source_line found[DEEPEST]) {
    Dwarf_Addr shift;
    Dwarf_Die *scopes = NULL, *unit = unit_of(lines, address, &shift);
    struct source_line next =
        unit ? find_innermost(unit, address - shift) : (struct source_line){0};
    size_t count = 0;
    int all = next.line ? scopes_at(unit, address - shift, &scopes) : 0;
    for (int i = 0; i < all && next.line && count < DEEPEST; i++) {
        int tag = dw.dwarf_tag(&scopes[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        found[count] = next;
        found[count++].function = name_of(&scopes[i]);
        if (tag == DW_TAG_subprogram)
            break;
        next = call_of(&scopes[i], unit);
    }
    free(scopes);
    return count;
}

static int by_address(const void *one, const void *other) {
    const struct known *a = one, *b = other;
    return (a->address > b->address) - (a->address < b->address);
}

size_t source_lines_find(struct source_lines *lines, uint64_t address,
                         const struct source_line **found) {
    struct source_line texts[DEEPEST];
    const struct known wanted = {.address = address};
    struct known **node = tfind(&wanted, &lines->known, by_address);
    if (!node) {
        size_t count = find_lines(lines, address + lines->shift, texts);
        struct known *known = malloc(sizeof *known + count * sizeof *texts);
        if (known) {
            *known = (struct known){.address = address, .count = count};
            memcpy(known->lines, texts, count * sizeof *texts);
            node = tsearch(known, &lines->known, by_address);
            if (!node)
                free_known(known);
        }
    }
    *found = node ? (*node)->lines : NULL;
    return node ? (*node)->count : 0;
}

#else

struct source_lines *source_lines_open(const char *path) {
    (void)path;
    return NULL;
}

void source_lines_close(struct source_lines *lines) {
    (void)lines;
}

size_t source_lines_find(struct source_lines *lines, uint64_t address,
                         const struct source_line **found) {
    (void)lines, (void)address, (void)found;
    return 0;
}
#endif
