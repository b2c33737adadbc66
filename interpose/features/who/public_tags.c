/* The public interface's tags (interpose/api/bfcpreload.h). */
#include "interpose/api/bfcpreload.h"
#include "interpose/features/who/tags.h"

/* A domain of our own: no address that NVTX could have for one of its. */
#define OUR_DOMAIN UINT64_MAX

int bfc_tag_push(const char *name) {
    return name ? (int)bfc_tags_push(OUR_DOMAIN, bfc_tags_name(name)) : BFCPRELOAD_BAD_ARGUMENT;
}

int bfc_tag_pop(void) {
    return bfc_tags_pop(OUR_DOMAIN) ? 0 : BFCPRELOAD_NO_TAG;
}
