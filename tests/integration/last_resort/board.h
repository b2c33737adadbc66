/*
 * A board that several processes which share one device keep in a file: what each has, what each
 * asks for and since when. From it each learns what the time of an allocation was made of, exactly,
 * since all they have and ask for is on it.
 *
 * Without a path nothing is kept. A lock of the kernel's guards the file, which a killed process
 * gives back.
 */
#ifndef BFC_TESTS_LAST_RESORT_BOARD_H
#define BFC_TESTS_LAST_RESORT_BOARD_H

#include <stddef.h>

/* Of one allocation. */
struct waited {
    double starved_ms;  /* the time in which so much was not in use, for it and all before it */
    unsigned overtaken; /* by so many that began later, and left too little */
};

/* Opens the board at the path, for a device of `total` bytes; NULL: there is none. */
void board_open(const char *path, size_t total);

/* Before an allocation, and after it; with what came of it if it succeeded. */
void board_ask(size_t bytes);
struct waited board_got(size_t bytes, int success);

/* After a free: its time is one of use. */
void board_freed(size_t bytes);

#endif
