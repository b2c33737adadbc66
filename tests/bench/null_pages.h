/* A device that is asked for pages and does nothing, whatever it is asked for. */
#ifndef TESTS_BENCH_NULL_PAGES_H
#define TESTS_BENCH_NULL_PAGES_H

#include "pool/pages.h"

/* Their context: a uint64_t, the next address. */
extern const struct bfc_page_calls null_pages;

#endif
