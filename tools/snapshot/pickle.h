/*
 * Writes Python's pickles, protocol 4, as far as a snapshot needs them: dictionaries, lists, whole
 * numbers, texts. Words that occur often are written once and then referred to.
 *
 * Format: Python's module pickletools describes each code. Lists are written in parts, as Python
 * does, since readers hold a whole part on their stack. Thread-safety: one thread at a time for a
 * pickle.
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
        const char *word; /* a text constant of the program, which is compared by its address */
        uint32_t number;
    } words[PICKLE_WORDS];
    unsigned count;
    uint32_t noted; /* how many values can be referred to */
};

struct pickle_list {
    uint64_t items;
};

void pickle_begin(struct pickle *pickle, FILE *file);
void pickle_end(struct pickle *pickle);

void pickle_dict(struct pickle *pickle);
void pickle_dict_end(struct pickle *pickle);

/* Begin and end a list, and mark the beginning of an item; pickle_item must be called before each
 * item is written. */
struct pickle_list pickle_list(struct pickle *pickle);
void pickle_item(struct pickle *pickle, struct pickle_list *list);
void pickle_list_end(struct pickle *pickle, const struct pickle_list *list);

/* Writes a text constant. Each of the first PICKLE_WORDS constants is written only once, and then
 * referred to. */
void pickle_word(struct pickle *pickle, const char *word);

/* pickle_note gives a number to the value that was just written, by which pickle_again refers to
 * it. */
uint32_t pickle_note(struct pickle *pickle);
void pickle_again(struct pickle *pickle, uint32_t number);

/* These functions write a member of a dictionary: its key and its value. A text is cut off after
 * 255 bytes, with a question mark for each byte that is not ASCII; a word is a text constant. */
void pickle_put_word(struct pickle *pickle, const char *key, const char *word);
void pickle_put_text(struct pickle *pickle, const char *key, const char *text);
void pickle_put_number(struct pickle *pickle, const char *key, uint64_t number);
void pickle_put_boolean(struct pickle *pickle, const char *key, bool value);
void pickle_put_pair(struct pickle *pickle, const char *key, uint64_t a, uint64_t b);

#endif
