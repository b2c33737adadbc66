/*
 * Writes Python's pickles, protocol 4, as far as a memory snapshot needs them: dictionaries, lists,
 * whole numbers, texts. A word that occurs often is written as text once, and then only referred to
 * by a number.
 *
 * Python's module pickletools describes each code of the format. The items of a list are appended
 * to it 1,000 at a time, as Python does, because a reader keeps items on its stack until they are
 * appended.
 *
 * Thread-safety: one thread at a time for a pickle.
 */
#ifndef BFC_TOOLS_PICKLE_H
#define BFC_TOOLS_PICKLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PICKLE_WORDS 64

struct pickle {
    FILE *file;
    struct {
        /* a string constant of the program; such constants are compared by address */
        const char *word;
        uint32_t number;
    } words[PICKLE_WORDS];
    unsigned count;
    uint32_t noted; /* how many values have a number by which they can be referred to */
};

struct pickle_list {
    uint64_t items;
};

void pickle_begin(struct pickle *pickle, FILE *file);
void pickle_end(struct pickle *pickle);

void pickle_dict(struct pickle *pickle);
void pickle_dict_end(struct pickle *pickle);

/* pickle_list begins a list, and pickle_list_end ends it. pickle_item must be called before each
 * item is written. */
struct pickle_list pickle_list(struct pickle *pickle);
void pickle_item(struct pickle *pickle, struct pickle_list *list);
void pickle_list_end(struct pickle *pickle, const struct pickle_list *list);

/* Writes a string constant. Each of the first PICKLE_WORDS different constants is written as text
 * only once; later only its number is written. */
void pickle_word(struct pickle *pickle, const char *word);

/* pickle_note gives a number to the value that was just written, and pickle_again writes a
 * reference to the value with that number. */
uint32_t pickle_note(struct pickle *pickle);
void pickle_again(struct pickle *pickle, uint32_t number);

/* These functions write a member of a dictionary: its key and its value. pickle_put_text cuts the
 * text off after 255 bytes, and writes '?' for each byte that is not ASCII; the text of
 * pickle_put_word must be a string constant. */
void pickle_put_word(struct pickle *pickle, const char *key, const char *word);
void pickle_put_text(struct pickle *pickle, const char *key, const char *text);
void pickle_put_number(struct pickle *pickle, const char *key, uint64_t number);
void pickle_put_boolean(struct pickle *pickle, const char *key, bool value);
void pickle_put_pair(struct pickle *pickle, const char *key, uint64_t a, uint64_t b);

#endif
