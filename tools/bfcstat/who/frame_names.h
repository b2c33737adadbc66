/*
 * Finds names for the frames of a job's call stacks: functions and source files, and the library
 * that called CUDA. The names come from the files that the job has loaded, which are opened through
 * the root folder of the job's process (/proc/PID/root), as it may run in a container.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_WHO_NAMES_H
#define BFC_TOOLS_WHO_NAMES_H

#include "tools/job/job_who.h"
#include "tools/symbols/source_lines.h"
#include "tools/symbols/symbols.h"

/* WHO_LINES: how many lines of a call stack are shown at most. WHO_PLACE: bytes that suffice for
 * the text of who_place. */
enum { WHO_LINES = 160, WHO_PLACE = 512 };

struct who_names {
    const struct bfc_who *who;
    /* process of the job; 0: files are opened by their paths, not through the job's root folder */
    int pid;
    /* For each loaded object (executable or shared library) of the answer: its symbols, its source
     * lines, and whether it was opened. The first two are NULL if the object was not opened yet or
     * has none. */
    struct symbols **symbols;
    struct source_lines **lines;
    bool *opened;
};

/* Begins to find names for the call stacks of the answer `who` from the process `pid` (0: from a
 * file). False: no memory. who_names_end must be called in either case. */
bool who_names_begin(struct who_names *names, const struct bfc_who *who, int pid);
void who_names_end(struct who_names *names);

/* A frame of a call stack, for people to read: a function and where it is. The texts are valid
 * until who_names_end. */
struct who_line {
    const char *function; /* name of the function; NULL: not known */
    /* native code: path of the executable or library, or "" if there is none; Python: NULL */
    const char *object;
    const char
        *source;   /* source file; NULL: not known, as of native code without debug information */
    uint64_t line; /* number of the line in the source file */
    /* Native code: offset in the function; without a function, in the object; without an object, an
     * address. */
    uint64_t place;
    /* whether the compiler has inlined this function into the next one of the stack */
    bool inlined;
};

/* Stores a site's call stack in `lines`, innermost first, at most `most` lines; returns how many.
 * If the stack has lines of Python, they replace the native frames of the interpreter and of its
 * callers; frames of libraries that only pass calls from Python on to C are left out, too. */
size_t who_stack(struct who_names *names, const struct bfc_who_site *site, struct who_line *lines,
                 size_t most);

/* Returns the tag of a site (call stack), a text by which the thread said what it was doing; "" if
 * there was none. */
const char *who_tag(const struct who_names *names, const struct bfc_who_site *site);

/* Returns the path of the library, or of the executable, that called CUDA in the call stack of a
 * site; "" if it is not known. */
const char *who_library(struct who_names *names, const struct bfc_who_site *site);

/* Writes where in the program a call stack (site) allocates. If the stack has lines of Python, that
 * is the innermost line in the user's own files, or else the innermost of all. Without Python it is
 * the innermost function of the user's own code, followed by its caller, or else the innermost
 * function outside libraries that only pass calls on. Writes "" if none is known. The text is cut
 * off at `size` bytes; returns `text`. */
char *who_place(struct who_names *names, const struct bfc_who_site *site, char *text, size_t size);

/* Writes a frame as "function (file:line)", or with the offset if the source is not known, cut off
 * at `size` bytes; returns `text`. */
char *who_line_text(const struct who_line *line, char *text, size_t size);

/* Writes a frame as programs that draw flame graphs need it, "library`function", without offsets
 * and without ';', which separates frames there. Cut off at `size` bytes; returns `text`. */
char *who_frame_text(const struct who_line *line, char *text, size_t size);

#endif
