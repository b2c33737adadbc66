#include "base/decimal.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool bfc_decimal_parse(const char *text, double *number) {
    double result = 0, place = 1;
    const char *digit = text;
    for (; is_digit(*digit) && digit - text < 9; digit++)
        result = result * 10 + (*digit - '0');
    if (*digit == '.')
        for (digit++; is_digit(*digit); digit++)
            result += (*digit - '0') * (place /= 10);
    if (digit == text || *digit != '\0')
        return false;
    *number = result;
    return true;
}
