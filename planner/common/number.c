#include "planner/common/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

bool plan_parse_u64(const char *text, size_t length, uint64_t most, uint64_t *value) {
    uint64_t result = 0;
    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (__builtin_mul_overflow(result, (uint64_t)10, &result) ||
            __builtin_add_overflow(result, (uint64_t)(text[i] - '0'), &result))
            return false;
    }
    if (result > most)
        return false;
    *value = result;
    return true;
}

bool plan_parse_tick(const char *text, size_t length, uint64_t *tick) {
    const bool negative = length > 0 && text[0] == '-';
    uint64_t magnitude;
    const uint64_t most = negative ? PLAN_TICK_OF_ZERO : PLAN_MOST_BYTES;
    if (!plan_parse_u64(text + negative, length - negative, most, &magnitude))
        return false;
    *tick = negative ? PLAN_TICK_OF_ZERO - magnitude : PLAN_TICK_OF_ZERO + magnitude;
    return true;
}

bool plan_parse_seconds(const char *text, double *seconds) {
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    const double value = strtod(text, &end);
    if (*end != '\0' || !(value >= 0 && value <= 1e9))
        return false;
    *seconds = value;
    return true;
}

const char *plan_tick_print(uint64_t tick, char text[PLAN_TICK_TEXT]) {
    const bool negative = tick < PLAN_TICK_OF_ZERO;
    snprintf(text, PLAN_TICK_TEXT, "%s%" PRIu64, negative ? "-" : "",
             negative ? PLAN_TICK_OF_ZERO - tick : tick - PLAN_TICK_OF_ZERO);
    return text;
}

bool plan_round_up(uint64_t bytes, uint64_t align, uint64_t *rounded) {
    const uint64_t rest = bytes % align;
    const uint64_t result = rest == 0 ? bytes : bytes + (align - rest);
    if (result < bytes || result > PLAN_MOST_BYTES)
        return false;
    *rounded = result;
    return true;
}
