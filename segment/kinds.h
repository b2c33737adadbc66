/* The names of enumerators whose numbers stand in a segment, as bfcstat's texts and JSON keys show
 * them. For a number that this build does not know, bfc_event_kind_name and bfc_plan_source_name
 * return "other", the other functions NULL. */
#ifndef BFC_SEGMENT_KINDS_H
#define BFC_SEGMENT_KINDS_H

#include "layout/segment.h"

const char *bfc_forward_reason_name(enum bfc_forward_reason reason);
const char *bfc_bypass_kind_name(enum bfc_bypass_kind kind);
const char *bfc_rung_name(enum bfc_rung rung);
const char *bfc_event_kind_name(enum bfc_event_kind kind);

/* `source` is an enum bfc_plan_source: where a pool's plan comes from. */
const char *bfc_plan_source_name(uint64_t source);

#endif
