/*
 * Writing Python's pickles, protocol 4, as far as a snapshot needs it: dictionaries, lists, whole
 * numbers, texts. What comes again and again is written once and then referred to.
 *
 * Format: pickletools of Python's library describes each code. Lists go out in parts, as Python's
 * own do, since readers take a part at once. Not thread-safe: one thread a pickle.
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
        const char *word; /* by pointer: literals */
        uint32_t number;
    } words[PICKLE_WORDS];
    unsigned count;
    uint32_t noted; /* what can be referred to */
};

/* A list under way. */
struct pickle_list {
    uint64_t items;
};

void pickle_begin(struct pickle *pickle, FILE *file);
void pickle_end(struct pickle *pickle);

void pickle_dict(struct pickle *pickle);
void pickle_dict_end(struct pickle *pickle);

/* Call pickle_item before each item. */
struct pickle_list pickle_list(struct pickle *pickle);
void pickle_item(struct pickle *pickle, struct pickle_list *list);
void pickle_list_end(struct pickle *pickle, const struct pickle_list *list);

/* A literal, of which there are at most PICKLE_WORDS; `text`: any other, cut
 * off after 255 bytes; a question mark stands for what is not ASCII. */
void pickle_word(struct pickle *pickle, const char *word);
void pickle_text(struct pickle *pickle, const char *text);
void pickle_number(struct pickle *pickle, uint64_t number);

/* Notes what was just written, a whole list, so that it can be written again by its number. */
uint32_t pickle_note(struct pickle *pickle);
void pickle_again(struct pickle *pickle, uint32_t number);

/* Members of a dictionary. */
void pickle_put_word(struct pickle *pickle, const char *key, const char *word);
void pickle_put_text(struct pickle *pickle, const char *key, const char *text);
void pickle_put_number(struct pickle *pickle, const char *key, uint64_t number);
void pickle_put_boolean(struct pickle *pickle, const char *key, bool value);
void pickle_put_pair(struct pickle *pickle, const char *key, uint64_t a, uint64_t b);

#endif
