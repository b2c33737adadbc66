/* Names of the kinds that a segment counts, in texts and as JSON keys. For an unknown number: NULL,
 * and of events "other". */
#ifndef BFC_SEGMENT_KINDS_H
#define BFC_SEGMENT_KINDS_H

#include "layout/segment.h"

const char *bfc_forward_reason_name(enum bfc_forward_reason reason);
const char *bfc_bypass_kind_name(enum bfc_bypass_kind kind);
const char *bfc_rung_name(enum bfc_rung rung);
const char *bfc_event_kind_name(enum bfc_event_kind kind);

/* enum bfc_plan_source: "none", "file" or "auto"; "other" for what this program does not know. */
const char *bfc_plan_source_name(uint64_t source);

#endif
