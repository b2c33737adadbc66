/* How far one name is from another, to tell which variable was meant. Thread-safe. */
#ifndef BFC_INTERPOSE_DISTANCE_H
#define BFC_INTERPOSE_DISTANCE_H

/* Counts the letters to insert, leave out or change to make one name the other (V. Levenshtein,
 * 1966). Returns UINT_MAX for names that are longer than 63 bytes. */
unsigned bfc_name_distance(const char *a, const char *b);

#endif
