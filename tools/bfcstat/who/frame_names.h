/*
 * Names the frames of a job's stacks: functions and files, and the library that a site belongs to.
 * Names come from the files that the job has loaded, opened through its own root folder.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_WHO_NAMES_H
#define BFC_TOOLS_WHO_NAMES_H

#include "tools/job/job_who.h"
#include "tools/symbols/source_lines.h"
#include "tools/symbols/symbols.h"

/* the most lines of a stack, and the bytes that suffice for the text of who_place */
enum { WHO_LINES = 160, WHO_PLACE = 512 };

struct who_names {
    const struct bfc_who *who;
    int pid; /* 0: files are opened by their paths, not through the job's root folder */
    /* for each object; NULL: not opened yet, or there are none in it */
    struct symbols **symbols;
    struct source_lines **lines;
    bool *opened;
};

/* False: no memory. who_names_end must be called in either case. */
bool who_names_begin(struct who_names *names, const struct bfc_who *who, int pid);
void who_names_end(struct who_names *names);

/* A frame as text and numbers for people to read. The texts are valid until who_names_end. */
struct who_line {
    const char *function; /* NULL: not known */
    const char *object;   /* native: path of the object, or "" if there is none; Python: NULL */
    const char
        *source;    /* source file; NULL: not known, as of native code without debug information */
    uint64_t line;  /* in the source file */
    uint64_t place; /* native: offset in the function, or in the object; or an address */
    bool inlined;   /* the compiler has inlined this function into the next one of the stack */
};

/* Stores the site's stack in `lines`, innermost first, at most `most` lines; returns their number.
 * If Python runs, native frames end at the interpreter, and those that only bring a call of
 * Python's to C are left out. */
size_t who_stack(struct who_names *names, const struct bfc_who_site *site, struct who_line *lines,
                 size_t most);

/* Returns the tag that the thread had set at the site; "" if none. */
const char *who_tag(const struct who_names *names, const struct bfc_who_site *site);

/* Returns the path of the library, or program, that called CUDA; "" if it is not known. */
const char *who_library(struct who_names *names, const struct bfc_who_site *site);

/* Writes where in the program a site allocates: its innermost line of Python, of the user's own
 * files if there is one in them, else its innermost function of the user's own code and what calls
 * it, else that which does not only pass calls on; "" if that is not known. The text is cut off at
 * `size` bytes; returns `text`. */
char *who_place(struct who_names *names, const struct bfc_who_site *site, char *text, size_t size);

/* Writes a line as "function (file:line)" or similar, cut off at `size` bytes; returns `text`. */
char *who_line_text(const struct who_line *line, char *text, size_t size);

/* Writes a line as flame graphs need it, "library`function", without offsets and ';', cut off at
 * `size` bytes; returns `text`. */
char *who_frame_text(const struct who_line *line, char *text, size_t size);

#endif
