#include "tools/plan/graph/graph.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "planner/common/number.h"
#include "planner/common/watch.h"

#define MOST_DEPTH 16
#define PARSE_BYTES 65536 /* how many bytes are parsed between two updates of the progress */
/* Roughly what percentage of the time of reading a graph has passed when the text is parsed, when
 * all nodes are known, and when all inputs of nodes are known. The rest of the time goes to freeing
 * the parsed text. */
#define PARSE_PERCENT 55
#define NODES_PERCENT 70
#define INPUTS_PERCENT 80
#define NODES_PER_WATCH 1024
#define SHOWN 40

struct reader {
    struct graph *graph;
    struct plan_error *error;
    struct names names; /* names of tensors; the number of a name is the index of the tensor */
    struct names node_names;
    /* for each tensor: the name of the tensor whose memory it shares; empty: none */
    struct name *aliases;
    uint32_t *last_reader; /* for each tensor: the last node so far that reads it */
    uint32_t tensors_room, inputs_room;
    char where[96]; /* which node or tensor is being read, for error messages */
};

void graph_free(struct graph *graph) {
    file_free(&graph->text);
    free(graph->nodes);
    free(graph->tensors);
    free(graph->input);
    *graph = (struct graph){0};
}

static bool fail_at(struct reader *reader, const char *why, const char *what) {
    return plan_fail(reader->error, "%s: %s: %s%.*s", reader->graph->path, reader->where, why,
                     SHOWN, what);
}

static bool fail_named(struct reader *reader, const char *why, struct name name) {
    const int shown = name.length > SHOWN ? SHOWN : (int)name.length;
    return plan_fail(reader->error, "%s: %s: %s'%.*s'", reader->graph->path, reader->where, why,
                     shown, name.text);
}

/* Copies a name into graph->text. That memory is as large as the whole file and never moves, so
 * pointers to names stay valid. */
static struct name keep_name(struct graph *graph, const char *text, size_t length) {
    char *copy = graph->text.bytes + graph->text.size;
    memcpy(copy, text, length);
    graph->text.size += length;
    return (struct name){copy, length};
}

static bool read_name(struct reader *reader, struct json_object *object, const char *key,
                      struct name *name) {
    struct json_object *value;
    if (!json_object_object_get_ex(object, key, &value) ||
        !json_object_is_type(value, json_type_string) || json_object_get_string_len(value) == 0)
        return fail_at(reader, "it needs a text in ", key);
    const size_t length = (size_t)json_object_get_string_len(value);
    if (reader->graph->text.size + length > reader->graph->text_room)
        return fail_at(reader, "its name is too long: ", key);
    *name = keep_name(reader->graph, json_object_get_string(value), length);
    return true;
}

static bool read_bytes(struct reader *reader, struct json_object *object, const char *key,
                       bool needed, uint64_t *bytes) {
    struct json_object *value;
    *bytes = 0;
    if (!json_object_object_get_ex(object, key, &value)) {
        if (!needed)
            return true;
        return fail_at(reader, "it needs a whole number of bytes in ", key);
    }
    const bool whole = json_object_is_type(value, json_type_int);
    const bool negative = whole && json_object_get_int64(value) < 0;
    if (!whole || negative || json_object_get_uint64(value) > PLAN_MOST_BYTES)
        return fail_at(reader, "not a whole number of bytes from 0 to 2^63 in ", key);
    *bytes = json_object_get_uint64(value);
    return true;
}

static bool read_flag(struct reader *reader, struct json_object *object, const char *key,
                      bool *flag) {
    struct json_object *value;
    *flag = false;
    if (!json_object_object_get_ex(object, key, &value))
        return true;
    if (!json_object_is_type(value, json_type_boolean))
        return fail_at(reader, "neither true nor false in ", key);
    *flag = json_object_get_boolean(value);
    return true;
}

/* Sets `*array` to the array under a key of a JSON object; to NULL if the object has no such key.
 * False: the value is no array. */
static bool read_array(struct reader *reader, struct json_object *object, const char *key,
                       struct json_object **array) {
    *array = NULL;
    if (!json_object_object_get_ex(object, key, array))
        return true;
    return json_object_is_type(*array, json_type_array) || fail_at(reader, "not an array: ", key);
}

static bool check_keys(struct reader *reader, struct json_object *object,
                       const char *const *accepted) {
    if (!json_object_is_type(object, json_type_object))
        return fail_at(reader, "not an object", "");
    json_object_object_foreach(object, key, value) {
        (void)value;
        size_t i = 0;
        while (accepted[i] && strcmp(accepted[i], key) != 0)
            i++;
        if (!accepted[i])
            return fail_at(reader, "unknown key ", key);
    }
    return true;
}

static bool grow_tensors(struct reader *reader) {
    struct graph *graph = reader->graph;
    const uint32_t room = reader->tensors_room == 0 ? 256 : reader->tensors_room * 2;
    struct tensor *tensors = realloc(graph->tensors, room * sizeof *tensors);
    if (!tensors)
        return plan_fail_memory(reader->error);
    graph->tensors = tensors;
    struct name *aliases = realloc(reader->aliases, room * sizeof *aliases);
    if (!aliases)
        return plan_fail_memory(reader->error);
    reader->aliases = aliases;
    reader->tensors_room = room;
    return true;
}

static bool read_tensor(struct reader *reader, struct json_object *object, uint32_t producer) {
    static const char *const keys[] = {"name", "size", "alias", "keep", NULL};
    struct graph *graph = reader->graph;
    struct tensor tensor = {.producer = producer, .alias = NO_NODE};
    struct name alias = {NULL, 0};
    if (graph->tensors_count == reader->tensors_room && !grow_tensors(reader))
        return false;
    if (!check_keys(reader, object, keys) || !read_name(reader, object, "name", &tensor.name) ||
        !read_bytes(reader, object, "size", true, &tensor.size) ||
        !read_flag(reader, object, "keep", &tensor.kept))
        return false;
    if (json_object_object_get_ex(object, "alias", NULL) &&
        !read_name(reader, object, "alias", &alias))
        return false;
    bool fresh;
    if (names_add(&reader->names, tensor.name, &fresh) == NAMES_NONE)
        return plan_fail_memory(reader->error);
    if (!fresh)
        return fail_at(reader, "there are two tensors named ",
                       json_object_get_string(json_object_object_get(object, "name")));
    reader->aliases[graph->tensors_count] = alias;
    graph->tensors[graph->tensors_count++] = tensor;
    return true;
}

static bool read_tensors(struct reader *reader, struct json_object *array, uint32_t producer) {
    const size_t count = !array ? 0 : json_object_array_length(array);
    for (size_t i = 0; i < count; i++)
        if (!read_tensor(reader, json_object_array_get_idx(array, i), producer))
            return false;
    return true;
}

static void locate_error(struct reader *reader, const char *what, size_t number, struct name name) {
    const int shown = name.length > SHOWN ? SHOWN : (int)name.length;
    snprintf(reader->where, sizeof reader->where, "%s %zu%s%.*s%s", what, number,
             shown > 0 ? " ('" : "", shown, shown > 0 ? name.text : "", shown > 0 ? "')" : "");
}

/* Reads a node and its outputs. Inputs are read by read_inputs in a second pass over the nodes,
 * since they may name outputs of later nodes. */
static bool read_node(struct reader *reader, struct json_object *object, uint32_t number) {
    static const char *const keys[] = {"name", "inputs", "outputs", "workspace", NULL};
    struct node *node = &reader->graph->nodes[number];
    struct json_object *outputs;
    bool fresh;
    locate_error(reader, "node", number, (struct name){NULL, 0});
    if (!check_keys(reader, object, keys) || !read_name(reader, object, "name", &node->name))
        return false;
    locate_error(reader, "node", number, node->name);
    if (names_add(&reader->node_names, node->name, &fresh) == NAMES_NONE)
        return plan_fail_memory(reader->error);
    if (!fresh)
        return fail_at(reader, "another node has its name", "");
    if (!read_bytes(reader, object, "workspace", false, &node->workspace) ||
        !read_array(reader, object, "outputs", &outputs))
        return false;
    node->first_output = reader->graph->tensors_count;
    if (!read_tensors(reader, outputs, number))
        return false;
    node->outputs = reader->graph->tensors_count - node->first_output;
    return true;
}

static bool add_input(struct reader *reader, struct node *node, uint32_t tensor) {
    struct graph *graph = reader->graph;
    const uint32_t number = (uint32_t)(node - graph->nodes);
    if (reader->last_reader[tensor] == number)
        return true;
    reader->last_reader[tensor] = number;
    if (graph->inputs_count == reader->inputs_room) {
        const uint32_t room = reader->inputs_room == 0 ? 256 : reader->inputs_room * 2;
        uint32_t *input = realloc(graph->input, room * sizeof *input);
        if (!input)
            return plan_fail_memory(reader->error);
        graph->input = input;
        reader->inputs_room = room;
    }
    graph->input[graph->inputs_count++] = tensor;
    return true;
}

/* Reads the inputs of a node, in a second pass over the nodes: only then are all tensors known. */
static bool read_inputs(struct reader *reader, struct json_object *object, uint32_t number) {
    struct node *node = &reader->graph->nodes[number];
    struct json_object *array;
    locate_error(reader, "node", number, node->name);
    node->first_input = reader->graph->inputs_count;
    if (!read_array(reader, object, "inputs", &array))
        return false;
    const size_t count = !array ? 0 : json_object_array_length(array);
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = json_object_array_get_idx(array, i);
        if (!json_object_is_type(value, json_type_string))
            return fail_at(reader, "an input is not the name of a tensor", "");
        const char *text = json_object_get_string(value);
        const struct name name = {text, (size_t)json_object_get_string_len(value)};
        const uint32_t tensor = names_find(&reader->names, name);
        if (tensor == NAMES_NONE)
            return fail_at(reader, "no tensor has the name of its input ", text);
        if (reader->graph->tensors[tensor].producer == number)
            return fail_at(reader, "it reads what it writes itself: ", text);
        if (!add_input(reader, node, tensor))
            return false;
    }
    node->inputs = reader->graph->inputs_count - node->first_input;
    return true;
}

static bool resolve_aliases(struct reader *reader) {
    struct graph *graph = reader->graph;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (reader->aliases[t].length == 0)
            continue;
        locate_error(reader, "tensor", t, graph->tensors[t].name);
        graph->tensors[t].alias = names_find(&reader->names, reader->aliases[t]);
        if (graph->tensors[t].alias == NAMES_NONE)
            return fail_named(reader, "no tensor has the name of its alias ", reader->aliases[t]);
        graph->has_alias = true;
    }
    return true;
}

static bool read_kept(struct reader *reader, struct json_object *array) {
    const size_t count = !array ? 0 : json_object_array_length(array);
    for (size_t i = 0; i < count; i++) {
        struct json_object *value = json_object_array_get_idx(array, i);
        if (!json_object_is_type(value, json_type_string))
            return fail_at(reader, "in outputs there is something else than names", "");
        const struct name name = {json_object_get_string(value),
                                  (size_t)json_object_get_string_len(value)};
        const uint32_t tensor = names_find(&reader->names, name);
        if (tensor == NAMES_NONE)
            return fail_at(reader, "no tensor has the name in outputs ", name.text);
        reader->graph->tensors[tensor].kept = true;
    }
    return true;
}

/* Calls `read` for each node. After that, `percent` of the work of reading the graph is done. */
static bool read_nodes(struct reader *reader, struct json_object *nodes, uint64_t percent,
                       bool (*read)(struct reader *, struct json_object *, uint32_t)) {
    const uint32_t count = reader->graph->nodes_count;
    bool good = true;
    watch_part(percent, count);
    for (uint32_t i = 0; good && i < count; i++) {
        good = read(reader, json_object_array_get_idx(nodes, i), i);
        if (i % NODES_PER_WATCH == 0)
            watch_add(NODES_PER_WATCH);
    }
    return good;
}

static bool read_graph(struct reader *reader, struct json_object *root) {
    static const char *const keys[] = {"inputs", "nodes", "outputs", NULL};
    struct graph *graph = reader->graph;
    struct json_object *inputs, *nodes, *outputs;
    snprintf(reader->where, sizeof reader->where, "graph");
    if (!check_keys(reader, root, keys) || !read_array(reader, root, "inputs", &inputs) ||
        !read_array(reader, root, "nodes", &nodes) ||
        !read_array(reader, root, "outputs", &outputs))
        return false;
    const size_t count = !nodes ? 0 : json_object_array_length(nodes);
    if (!nodes || count > MOST_NODES)
        return fail_at(reader, !nodes ? "it needs an array nodes" : "too many nodes", "");
    graph->nodes = calloc(count + 1, sizeof *graph->nodes);
    if (!graph->nodes)
        return plan_fail_memory(reader->error);
    graph->nodes_count = (uint32_t)count;
    snprintf(reader->where, sizeof reader->where, "graph inputs");
    bool good = read_tensors(reader, inputs, NO_NODE) &&
                read_nodes(reader, nodes, NODES_PERCENT, read_node);
    reader->last_reader = malloc(((size_t)graph->tensors_count + 1) * sizeof(uint32_t));
    if (!reader->last_reader)
        return plan_fail_memory(reader->error);
    memset(reader->last_reader, 0xff, graph->tensors_count * sizeof(uint32_t));
    good = good && read_nodes(reader, nodes, INPUTS_PERCENT, read_inputs);
    snprintf(reader->where, sizeof reader->where, "graph");
    return good && resolve_aliases(reader) && read_kept(reader, outputs);
}

static unsigned line_of(const struct file_text *text, size_t at) {
    unsigned line = 1;
    for (size_t i = 0; i < at && i < text->size; i++)
        line += text->bytes[i] == '\n';
    return line;
}

/* Parses the JSON text in pieces, so that progress can be shown. The zero byte after the text is
 * part of the last piece. Sets `*end` to where the parser has stopped, and `*reason` to success or
 * the parser's error. */
static struct json_object *parse_pieces(struct json_tokener *tokener, const struct file_text *text,
                                        size_t *end, enum json_tokener_error *reason) {
    struct json_object *root = NULL;
    *reason = json_tokener_continue;
    for (size_t at = 0; at <= text->size && *reason == json_tokener_continue; at += PARSE_BYTES) {
        const size_t rest = text->size + 1 - at;
        root = json_tokener_parse_ex(tokener, text->bytes + at,
                                     rest < PARSE_BYTES ? (int)rest : PARSE_BYTES);
        *reason = json_tokener_get_error(tokener);
        *end = at + json_tokener_get_parse_end(tokener);
        watch_add(PARSE_BYTES);
    }
    /* After the JSON value only blanks may follow. The parser has read no further than the piece in
     * which the value ends, so what follows the value is checked here. */
    *end += strspn(text->bytes + *end, " \t\r\n");
    if (*reason == json_tokener_success && *end < text->size)
        *reason = json_tokener_error_parse_unexpected;
    return root;
}

static struct json_object *parse_json(const struct file_text *text, const char *path,
                                      struct plan_error *error) {
    struct json_tokener *tokener = text->size < INT32_MAX ? json_tokener_new_ex(MOST_DEPTH) : NULL;
    if (!tokener) {
        plan_fail(error, "%s: too large for a graph", path);
        return NULL;
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    size_t end = 0;
    enum json_tokener_error reason;
    watch_begin(0);
    watch_part(PARSE_PERCENT, text->size);
    struct json_object *root = parse_pieces(tokener, text, &end, &reason);
    json_tokener_free(tokener);
    if (reason == json_tokener_success && root)
        return root;
    json_object_put(root);
    plan_fail(error, "%s: line %u: not JSON: %s", path, line_of(text, end),
              reason == json_tokener_continue ? "the file ends too early"
                                              : json_tokener_error_desc(reason));
    return NULL;
}

bool graph_parse(struct graph *graph, const struct file_text *text, const char *path,
                 struct plan_error *error) {
    struct graph result = {.path = path, .text_room = text->size + 1};
    struct reader reader = {.graph = &result, .error = error};
    struct json_object *root = parse_json(text, path, error);
    if (!root)
        return false;
    result.text.bytes = malloc(result.text_room);
    const bool good = result.text.bytes ? read_graph(&reader, root) : plan_fail_memory(error);
    json_object_put(root);
    names_free(&reader.names);
    names_free(&reader.node_names);
    free(reader.aliases);
    free(reader.last_reader);
    if (!good) {
        graph_free(&result);
        return false;
    }
    *graph = result;
    return true;
}
