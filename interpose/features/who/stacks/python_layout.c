#include "interpose/features/who/stacks/python_layout.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Offsets are from Include/internal/pycore_frame.h and other headers of each version. */

#define NONE SIZE_MAX

struct bfc_python_layout {
    const char *version; /* what Py_GetVersion's text begins with */
    /* Offsets in bytes from the start of a structure. */
    size_t thread_frame; /* a pointer to the innermost frame, or to the C frame that points there */
    size_t c_frame_frame; /* NONE in versions without a C frame */
    size_t frame_code, frame_previous, frame_instruction, frame_owner;
    size_t code_file, code_function, code_first_traceable, code_instructions;
    size_t text_state, text_ascii; /* flags of a text; the bytes of an ASCII text */
};

static const struct bfc_python_layout layouts[] = {
    {"3.11.", 56, 8, 32, 48, 56, 69, 112, 128, 168, 184, 32, 48},
    {"3.12.", 56, 0, 0, 8, 56, 70, 112, 128, 176, 192, 32, 40},
    {"3.13.", 72, NONE, 0, 8, 56, 70, 112, 128, 184, 200, 32, 40},
    {"3.14.", 72, NONE, 0, 8, 56, 74, 112, 128, 192, 208, 32, 40},
};

const struct bfc_python_layout *bfc_python_layout_find(const char *version) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (strncmp(version, layouts[i].version, strlen(layouts[i].version)) == 0 &&
            !strstr(version, "free-threading")) /* a build with another object header */
            return &layouts[i];
    return NULL;
}

static const char *field_at(const void *structure, size_t offset) {
    return (const char *)structure + offset;
}

static void *pointer_at(const void *structure, size_t offset) {
    void *pointer;
    memcpy(&pointer, field_at(structure, offset), sizeof pointer);
    return pointer;
}

/* The bits `compact` and `ascii` of a text's flags, above two bits for interning and three for
 * kind. */
enum { TEXT_IS_ASCII = 3 << 5 };

static const char *text_at(const struct bfc_python_layout *layout, const void *code,
                           size_t offset) {
    const void *text = pointer_at(code, offset);
    uint32_t state;
    memcpy(&state, field_at(text, layout->text_state), sizeof state);
    return (state & TEXT_IS_ASCII) == TEXT_IS_ASCII ? field_at(text, layout->text_ascii) : "?";
}

/* Frames with this owner belong to the interpreter itself and to no Python function. */
enum { OWNER_C_STACK = 3 };

/* From 3.14 on, the lowest two bits of a frame's reference to its code are flags. */
static void *code_of(const struct bfc_python_layout *layout, const void *frame) {
    uintptr_t reference;
    memcpy(&reference, field_at(frame, layout->frame_code), sizeof reference);
    return (void *)(reference & ~(uintptr_t)3);
}

/* Returns the offset of the current instruction in its code, in bytes; -1 if the frame is not set
 * up yet, or belongs to no function. */
static int64_t offset_in(const struct bfc_python_layout *layout, const void *frame,
                         const void *code) {
    int32_t first;
    memcpy(&first, field_at(code, layout->code_first_traceable), sizeof first);
    int64_t offset = (const char *)pointer_at(frame, layout->frame_instruction) -
                     field_at(code, layout->code_instructions);
    bool none =
        *field_at(frame, layout->frame_owner) == OWNER_C_STACK || offset < (int64_t)first * 2;
    return none ? -1 : offset;
}

static bool is_code(const void *object, const void *code_type) {
    /* An object begins with its reference count, and its type follows. */
    return object && pointer_at(object, sizeof(intptr_t)) == code_type;
}

static const void *innermost_frame(const struct bfc_python_layout *layout, const void *thread) {
    const void *first = pointer_at(thread, layout->thread_frame);
    return first && layout->c_frame_frame != NONE ? pointer_at(first, layout->c_frame_frame)
                                                  : first;
}

void bfc_python_layout_walk(const struct bfc_python_layout *layout, const void *thread,
                            const void *code_type, int (*line_of)(void *code, int offset),
                            bfc_python_visit *visit, void *context) {
    const void *frame = innermost_frame(layout, thread);
    for (bool more = true; frame && more; frame = pointer_at(frame, layout->frame_previous)) {
        void *code = code_of(layout, frame);
        int64_t offset = is_code(code, code_type) ? offset_in(layout, frame, code) : -1;
        if (offset >= 0)
            more = visit(context, text_at(layout, code, layout->code_function),
                         text_at(layout, code, layout->code_file), line_of(code, (int)offset));
    }
}
