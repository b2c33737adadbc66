/* How far one name is from another, to tell which variable was meant. Thread-safe. */
#ifndef BFC_INTERPOSE_DISTANCE_H
#define BFC_INTERPOSE_DISTANCE_H

/* Letters to insert, leave out or change (V. Levenshtein, 1966); UINT_MAX for names that are longer
 * than 63 bytes. */
unsigned bfc_name_distance(const char *a, const char *b);

#endif
