/* Names of the kinds that a segment counts, as texts and JSON keys show them. For an unknown number
 * the result is NULL; for an event's or a plan source's, "other". */
#ifndef BFC_SEGMENT_KINDS_H
#define BFC_SEGMENT_KINDS_H

#include "layout/segment.h"

const char *bfc_forward_reason_name(enum bfc_forward_reason reason);
const char *bfc_bypass_kind_name(enum bfc_bypass_kind kind);
const char *bfc_rung_name(enum bfc_rung rung);
const char *bfc_event_kind_name(enum bfc_event_kind kind);

/* `source` is an enum bfc_plan_source. */
const char *bfc_plan_source_name(uint64_t source);

#endif
