/* Writes parts of a whole as percentages for people. */
#include "base/percentage.h"

#include <stdio.h>

char *bfc_share_text(double share, char *text, size_t size) {
    double percent = share * 100;
    if (share < 0)
        snprintf(text, size, "-");
    else if (percent > 0 && percent < 0.05)
        snprintf(text, size, "<0.1 %%");
    else if (percent < 100 && percent >= 99.95)
        snprintf(text, size, ">99.9 %%");
    else
        snprintf(text, size, "%.1f %%", percent);
    return text;
}
