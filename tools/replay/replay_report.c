/* Writes the report of a replay, a web page with all regions, allocations and frees and their
 * addresses. */
#include <stdlib.h>
#include <string.h>

#include "tools/bfcstat/who/lines.h"
#include "tools/replay/show_replay.h"
#include "tools/report/call_lines.h"
#include "tools/report/page.h"
#include "tools/text/json_writer.h"

static void put_start(const struct replayed *replayed, FILE *stream) {
    const struct settings *settings = replayed->settings;
    struct json_writer json = json_writer_init(stream);
    char configuration[4096];
    bfc_options_print(&settings->options, configuration, sizeof configuration);
    json.compact = true;
    json_object(&json, NULL);
    json_string(&json, "type", "start");
    json_unsigned(&json, "format", REPORT_FORMAT);
    json_string(&json, "clock", "calls");
    json_string(&json, "names", replayed->input->from_trace ? "allocation" : "row");
    json_string(&json, "command", replayed->trace);
    json_string(&json, "library", BFC_VERSION);
    if (settings->memory == UINT64_MAX)
        json_null(&json, "memory");
    else
        json_unsigned(&json, "memory", settings->memory);
    json_string(&json, "configuration", configuration);
    json_object_end(&json);
}

static void put_entry(const struct input *input, const struct log_entry *entry,
                      struct report_calls *calls) {
    static const char kinds[] = {[LOG_RESERVE] = 'g',
                                 [LOG_RELEASE] = 'r',
                                 [LOG_ALLOCATE] = 'a',
                                 [LOG_FREE] = 'f',
                                 [LOG_FAIL] = 'o'};
    bool is_block = entry->op != LOG_RESERVE && entry->op != LOG_RELEASE;
    struct input_stack stack = {0};
    if (input->stacks && entry->op == LOG_ALLOCATE)
        stack = input->stacks[entry->allocation];
    report_put_call(calls,
                    &(struct report_call){
                        .kind = kinds[entry->op],
                        .at = entry->call,
                        .pool = entry->device,
                        .address = entry->address,
                        .bytes = entry->op == LOG_FREE ? 0 : entry->bytes,
                        .name = is_block ? input->events.allocations[entry->allocation].serial : 0,
                        .size = entry->size,
                        .site = stack.site,
                        .weight = stack.weight});
}

/* Writes the call stacks of the trace. Names of functions come from the files on this machine that
 * have the paths which were recorded. */
static void put_sites(const struct input *input, FILE *stream) {
    struct who_names names;
    if (input->stacks && who_names_begin(&names, &input->who, 0)) {
        who_put_sites(&names, 1, stream);
        who_names_end(&names);
    }
}

/* Writes those allocations that failed when the trace was recorded (not those that fail in the
 * replay) up to the input's call `call`. `*next` is the index of the first that is not written
 * yet. */
static void put_refusals(const struct events *events, uint32_t *next, uint64_t call,
                         struct report_calls *calls) {
    for (; *next < events->refusals_count && events->refusals[*next].event <= call; ++*next)
        report_put_call(calls, &(struct report_call){.kind = 'O',
                                                     .at = events->refusals[*next].event,
                                                     .pool = events->refusals[*next].device,
                                                     .bytes = events->refusals[*next].bytes});
}

static void put_calls(const struct input *input, const struct log *log, FILE *stream) {
    struct report_calls calls = {.file = stream};
    uint32_t next = 0;
    for (size_t i = 0; i < log->count; i++) {
        put_refusals(&input->events, &next, log->list[i].call, &calls);
        put_entry(input, &log->list[i], &calls);
    }
    put_refusals(&input->events, &next, UINT64_MAX, &calls);
    report_end_calls(&calls, 0);
}

/* Writes those lines of the recording that contain texts from the input, such as names of
 * functions. report_put escapes the texts, which could otherwise end the page's script element.
 * False: no memory. */
static bool put_texts(const struct replayed *replayed, FILE *stream) {
    char *lines = NULL;
    size_t size;
    FILE *memory = open_memstream(&lines, &size);
    if (!memory)
        return false;
    put_start(replayed, memory);
    put_sites(replayed->input, memory);
    bool good = !ferror(memory);
    good = fclose(memory) == 0 && good;
    if (good)
        report_put(lines, stream);
    free(lines);
    return good;
}

static bool put_recording(const struct replayed *replayed, FILE *stream) {
    const struct input *input = replayed->input;
    if (!put_texts(replayed, stream))
        return false;
    put_calls(input, replayed->log, stream);
    fprintf(stream, "{\"type\":\"end\",\"at\":%u,\"reason\":\"trace\"}\n", input->events.count);
    return true;
}

bool show_report(const struct replayed *replayed, unsigned count, const char *path,
                 struct plan_error *error) {
    struct file_writer writer;
    bool to_stdout = strcmp(path, "-") == 0;
    if (!to_stdout && !file_open(&writer, path, error))
        return false;
    FILE *stream = to_stdout ? stdout : writer.stream;
    bool good = true;
    report_begin(stream);
    for (unsigned i = 0; i < count && good; i++) {
        if (i > 0)
            report_beside(stream);
        good = put_recording(&replayed[i], stream);
    }
    report_end(stream);
    if (good)
        return to_stdout || file_close(&writer, error);
    if (!to_stdout)
        file_abandon(&writer);
    return plan_fail_memory(error);
}
