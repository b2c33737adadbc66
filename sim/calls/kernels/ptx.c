// PTX text, of which the entries' names and parameters and the global variables' names and sizes
// are read. Binary images cannot be run here and are refused as a device refuses one that was built
// for another; with SIM_KERNELS=skip they are taken unread.
#include "sim/calls/kernels/ptx.h"

#include "sim/base/handle.h"
#include "sim/base/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

// Of the variables of an image that is not read.
enum { OPAQUE_SIZE = 1 << 20 };

struct text {
    const char *at;
};

// The next word: a run of characters of names and directives, or one other character.
static size_t next_word(struct text *text, const char **word) {
    for (;;) {
        while (isspace((unsigned char)*text->at)) {
            text->at++;
        }
        if (text->at[0] != '/' || text->at[1] != '/') {
            break;
        }
        text->at += strcspn(text->at, "\n");
    }
    *word = text->at;
    size_t length = 0;
    while (isalnum((unsigned char)text->at[length]) ||
           (text->at[length] != '\0' && strchr("._$%", text->at[length]) != NULL)) {
        length++;
    }
    length = length == 0 && *text->at != '\0' ? 1 : length;
    text->at += length;
    return length;
}

static bool is(const char *word, size_t length, const char *wanted) {
    return strlen(wanted) == length && strncmp(word, wanted, length) == 0;
}

// The bytes of a type such as .u32 or .b8; 0: not a type.
static size_t type_size(const char *word, size_t length) {
    if (length < 3 || word[0] != '.' || strchr("usfb", word[1]) == NULL) {
        return 0;
    }
    char *end = NULL;
    unsigned long bits = strtoul(word + 2, &end, 10);
    return end == word + length && bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

static void skip_braces(struct text *text) {
    const char *word = NULL;
    size_t length = 0, depth = 1;
    while (depth > 0 && (length = next_word(text, &word)) > 0) {
        depth += is(word, length, "{");
        depth -= is(word, length, "}");
    }
}

// The elements of an array parameter or variable: the number in [ ].
static size_t elements(struct text *text) {
    const char *word = NULL;
    struct text ahead = *text;
    if (next_word(&ahead, &word) != 1 || *word != '[') {
        return 1;
    }
    size_t count = strtoul(ahead.at, NULL, 10);
    while (next_word(&ahead, &word) > 0 && *word != ']') {
    }
    *text = ahead;
    return count;
}

static bool read_parameters(struct text *text, struct CUfunc_st *function) {
    const char *word = NULL;
    size_t length = 0, type = 0;
    struct text ahead = *text;
    if (next_word(&ahead, &word) != 1 || *word != '(') {
        return true;
    }
    *text = ahead;
    while ((length = next_word(text, &word)) > 0 && !is(word, length, ")")) {
        size_t size = type_size(word, length);
        if (size != 0) {
            type = size;
        } else if (type != 0 && (isalpha((unsigned char)*word) || *word == '_')) {
            if (function->count == SIM_MAX_PARAMETERS) {
                return false;
            }
            function->sizes[function->count] = type * elements(text);
            function->alignments[function->count++] = type;
            type = 0;
        }
    }
    return length > 0;
}

static struct CUfunc_st *add_function(struct sim_image *image, const char *name, size_t length) {
    struct CUfunc_st *function = calloc(1, sizeof *function);
    char *copy = strndup(name, length);
    if (function == NULL || copy == NULL || !sim_handle_add(function, SIM_FUNCTION)) {
        free(function);
        free(copy);
        return NULL;
    }
    function->name = copy;
    function->module = image->module;
    function->next = image->functions;
    image->functions = function;
    return function;
}

static bool read_entry(struct text *text, struct sim_image *image) {
    const char *word = NULL;
    size_t length = next_word(text, &word);
    struct CUfunc_st *function = length != 0 ? add_function(image, word, length) : NULL;
    if (function == NULL || !read_parameters(text, function)) {
        return false;
    }
    while ((length = next_word(text, &word)) > 0 && *word != '{') {
        if (*word == ';') { // a declaration
            return true;
        }
    }
    skip_braces(text);
    return length > 0;
}

static struct sim_variable *add_variable(struct sim_image *image, const char *name, size_t length,
                                         size_t size) {
    struct sim_variable *variable = calloc(1, sizeof *variable);
    char *copy = strndup(name, length);
    if (variable == NULL || copy == NULL) {
        free(variable);
        free(copy);
        return NULL;
    }
    variable->name = copy;
    variable->size = size;
    variable->next = image->variables;
    image->variables = variable;
    return variable;
}

static bool read_variable(struct text *text, struct sim_image *image) {
    const char *word = NULL;
    size_t length = 0, type = 0;
    while ((length = next_word(text, &word)) > 0 && *word != ';') {
        if (type_size(word, length) != 0) {
            type = type_size(word, length);
        } else if (type != 0 && (isalpha((unsigned char)*word) || *word == '_')) {
            if (add_variable(image, word, length, type * elements(text)) == NULL) {
                return false;
            }
            type = 0;
        }
    }
    return length > 0;
}

static bool read_image(const char *ptx, struct sim_image *image) {
    struct text text = {.at = ptx};
    const char *word = NULL;
    size_t length = 0;
    bool good = true, versioned = false;
    while (good && (length = next_word(&text, &word)) > 0) {
        versioned = versioned || is(word, length, ".version");
        if (is(word, length, ".entry")) {
            good = read_entry(&text, image);
        } else if (is(word, length, ".global") || is(word, length, ".const")) {
            good = read_variable(&text, image);
        } else if (is(word, length, "{")) {
            skip_braces(&text);
        }
    }
    return good && versioned;
}

void sim_image_drop(struct sim_image *image) {
    while (image->functions != NULL) {
        struct CUfunc_st *function = image->functions;
        image->functions = function->next;
        sim_handle_remove(function);
        free(function->name);
        free(function);
    }
    while (image->variables != NULL) {
        struct sim_variable *variable = image->variables;
        image->variables = variable->next;
        free(variable->name);
        free(variable);
    }
}

// An image for a real device: ELF, a fat binary, or what nvcc's code registers, which leads to one.
static bool is_binary(const void *bytes) {
    static const unsigned magics[] = {0x464c457f, 0xba55ed50, 0x466243b1};
    unsigned magic = 0;
    memcpy(&magic, bytes, sizeof magic);
    return magic == magics[0] || magic == magics[1] || magic == magics[2];
}

// PTX begins with text.
CUresult sim_image_load(const void *bytes, struct sim_image *image) {
    const unsigned char *start = bytes;
    if (bytes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_options.skips_kernels && is_binary(bytes)) {
        image->opaque = true;
        return CUDA_SUCCESS;
    }
    if (!isspace(*start) && *start != '/' && *start != '.') {
        return isprint(*start) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (!read_image(bytes, image)) {
        sim_image_drop(image);
        return CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_SUCCESS;
}

struct CUfunc_st *sim_image_function(struct sim_image *image, const char *name) {
    struct CUfunc_st *function = image->functions;
    while (function != NULL && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    if (function == NULL && image->opaque) {
        function = add_function(image, name, strlen(name));
        if (function != NULL) {
            function->opaque = true;
        }
    }
    return function;
}

struct sim_variable *sim_image_add_variable(struct sim_image *image, const char *name,
                                            size_t size) {
    return add_variable(image, name, strlen(name), size);
}

struct sim_variable *sim_image_variable(struct sim_image *image, const char *name,
                                        struct sim_variable *after) {
    struct sim_variable *variable = after == NULL ? image->variables : after->next;
    while (variable != NULL && strcmp(variable->name, name) != 0) {
        variable = variable->next;
    }
    return variable != NULL || after != NULL || !image->opaque
               ? variable
               : sim_image_add_variable(image, name, OPAQUE_SIZE);
}
