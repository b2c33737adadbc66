// Checks for plain test programs: a failed one is told and ends the program with status 1.
#ifndef SIM_TESTS_CHECK_H
#define SIM_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

// That a call answers with one code.
#define ANSWERS(code, call)                                                                        \
    do {                                                                                           \
        int got_ = (int)(call);                                                                    \
        if (got_ != (int)(code)) {                                                                 \
            fprintf(stderr, "%s:%d: %s answered %d, not %d\n", __FILE__, __LINE__, #call, got_,    \
                    (int)(code));                                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define DO(call) ANSWERS(0, call)

#endif
