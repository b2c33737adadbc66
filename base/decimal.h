/* Decimal numbers, read in the same way whatever the program's locale is. */
#ifndef BFC_BASE_DECIMAL_H
#define BFC_BASE_DECIMAL_H

#include <stdbool.h>

/* Parses at most nine digits, then perhaps a point and further digits; one of the three may be all
 * there is, but not nothing. False: the text is anything else. */
bool bfc_decimal_parse(const char *text, double *number);

#endif
