#include "segment/kinds.h"

#include <stddef.h>

const char *bfc_forward_reason_name(enum bfc_forward_reason reason) {
    switch (reason) {
    case BFC_FORWARD_DISABLED:
        return "disabled";
    case BFC_FORWARD_NO_CONTEXT:
        return "no_context";
    case BFC_FORWARD_OLD_DRIVER:
        return "old_driver";
    case BFC_FORWARD_FOREIGN:
        return "foreign";
    case BFC_FORWARD_BAD_CALL:
        return "bad_call";
    case BFC_FORWARD_NO_HOST_MEMORY:
        return "no_host_memory";
    case BFC_FORWARD_TOO_LARGE:
        return "too_large";
    case BFC_FORWARD_CAPTURE:
        return "capture";
    case BFC_FORWARD_EXPORTS:
        return "exports";
    case BFC_FORWARD_BYPASSED:
        return "bypassed";
    case BFC_FORWARD_NO_PAGES:
        return "no_pages";
    case BFC_FORWARD_REFUSED:
        return "refused";
    case BFC_FORWARD_REASONS:
        break;
    }
    return NULL;
}

const char *bfc_bypass_kind_name(enum bfc_bypass_kind kind) {
    switch (kind) {
    case BFC_BYPASS_ASYNC:
        return "async";
    case BFC_BYPASS_MANAGED:
        return "managed";
    case BFC_BYPASS_VMM:
        return "vmm";
    case BFC_BYPASS_ARRAY:
        return "array";
    case BFC_BYPASS_PITCH:
        return "pitch";
    case BFC_BYPASS_V1:
        return "v1";
    case BFC_BYPASS_HOST:
        return "host";
    case BFC_BYPASS_UNKNOWN_ENTRY:
        return "unknown_entry";
    case BFC_BYPASS_KINDS:
        break;
    }
    return NULL;
}

const char *bfc_rung_name(enum bfc_rung rung) {
    switch (rung) {
    case BFC_RUNG_POOL:
        return "pool";
    case BFC_RUNG_CONTEXTS:
        return "contexts";
    case BFC_RUNG_JOBS:
        return "jobs";
    case BFC_RUNG_SLEEP:
        return "sleep";
    case BFC_RUNG_WAIT:
        return "wait";
    case BFC_RUNG_SPILL:
        return "spill";
    case BFC_RUNGS:
        break;
    }
    return NULL;
}

const char *bfc_event_kind_name(enum bfc_event_kind kind) {
    static const char *const names[] = {
        [BFC_EVENT_ALLOCATE] = "allocate",
        [BFC_EVENT_FREE] = "free",
        [BFC_EVENT_GROW] = "grow",
        [BFC_EVENT_REFUSED] = "refused",
        [BFC_EVENT_RELEASE] = "release",
        [BFC_EVENT_OUT_OF_MEMORY] = "out_of_memory",
        [BFC_EVENT_TRIM] = "trim",
        [BFC_EVENT_INVALID_FREE] = "invalid_free",
        [BFC_EVENT_BEGIN] = "begin",
        [BFC_EVENT_END] = "end",
        [BFC_EVENT_SAVED_CONTEXTS] = "saved_contexts",
        [BFC_EVENT_SAVED_JOBS] = "saved_jobs",
        [BFC_EVENT_WAITED] = "waited",
        [BFC_EVENT_SPILLED] = "spilled",
        [BFC_EVENT_PLAN_FOLLOWED] = "plan_followed",
        [BFC_EVENT_PLAN_LOST] = "plan_lost",
        [BFC_EVENT_PAGES_LEFT] = "pages_left",
        [BFC_EVENT_SAVED_SLEEP] = "saved_sleep",
        [BFC_EVENT_ASLEEP] = "asleep",
        [BFC_EVENT_AWAKE] = "awake",
    };
    return kind < sizeof names / sizeof names[0] && names[kind] ? names[kind] : "other";
}

const char *bfc_plan_source_name(uint64_t source) {
    static const char *const names[] = {
        [BFC_PLAN_NONE] = "none",
        [BFC_PLAN_OF_FILE] = "file",
        [BFC_PLAN_OF_LOOP] = "auto",
    };
    return source < sizeof names / sizeof names[0] ? names[source] : "other";
}
