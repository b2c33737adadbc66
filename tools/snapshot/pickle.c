#include "tools/snapshot/pickle.h"

#include <string.h>

enum {
    MARK = '(',
    STOP = '.',
    EMPTY_DICT = '}',
    SET_ITEMS = 'u',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    INT1 = 'K',
    INT2 = 'M',
    INT4 = 'J',
    GET = 'h',
    LONG_GET = 'j',
    PROTOCOL = 0x80,
    PAIR = 0x86,
    TRUE_VALUE = 0x88,
    FALSE_VALUE = 0x89,
    LONG = 0x8a,
    SHORT_TEXT = 0x8c,
    MEMOIZE = 0x94,
    PART = 1000 /* one code appends at most so many items to a list */
};

static void put_code(struct pickle *pickle, int code) {
    putc(code, pickle->file);
}

static void put_bytes(struct pickle *pickle, uint64_t number, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        put_code(pickle, i < sizeof number ? (int)(number >> 8 * i & 255) : 0);
}

void pickle_begin(struct pickle *pickle, FILE *file) {
    *pickle = (struct pickle){.file = file};
    put_code(pickle, PROTOCOL);
    put_code(pickle, 4);
}

void pickle_end(struct pickle *pickle) {
    put_code(pickle, STOP);
}

void pickle_dict(struct pickle *pickle) {
    put_code(pickle, EMPTY_DICT);
    put_code(pickle, MARK);
}

void pickle_dict_end(struct pickle *pickle) {
    put_code(pickle, SET_ITEMS);
}

struct pickle_list pickle_list(struct pickle *pickle) {
    put_code(pickle, EMPTY_LIST);
    return (struct pickle_list){0};
}

void pickle_item(struct pickle *pickle, struct pickle_list *list) {
    if (list->items && list->items % PART == 0)
        put_code(pickle, APPENDS);
    if (list->items % PART == 0)
        put_code(pickle, MARK);
    list->items++;
}

void pickle_list_end(struct pickle *pickle, const struct pickle_list *list) {
    if (list->items)
        put_code(pickle, APPENDS);
}

static void put_text(struct pickle *pickle, const char *text) {
    size_t length = strnlen(text, 255);
    put_code(pickle, SHORT_TEXT);
    put_code(pickle, (int)length);
    for (size_t i = 0; i < length; i++)
        put_code(pickle, (unsigned char)text[i] < 128 ? text[i] : '?');
}

void pickle_word(struct pickle *pickle, const char *word) {
    for (unsigned i = 0; i < pickle->count; i++)
        if (pickle->words[i].word == word) {
            pickle_again(pickle, pickle->words[i].number);
            return;
        }
    put_text(pickle, word);
    if (pickle->count < PICKLE_WORDS) {
        pickle->words[pickle->count].word = word;
        pickle->words[pickle->count++].number = pickle_note(pickle);
    }
}

uint32_t pickle_note(struct pickle *pickle) {
    put_code(pickle, MEMOIZE);
    return pickle->noted++;
}

void pickle_again(struct pickle *pickle, uint32_t number) {
    put_code(pickle, number < 256 ? GET : LONG_GET);
    put_bytes(pickle, number, number < 256 ? 1 : 4);
}

/*
 * Writes a number as a signed integer in as few bytes as possible. The top bit of the last byte is
 * the sign, so a number with this bit set gets one more byte, which is zero.
 */
static void put_long(struct pickle *pickle, uint64_t number) {
    unsigned count = 1;
    while (count <= sizeof number && number >> (8 * count - 1))
        count++;
    put_code(pickle, LONG);
    put_code(pickle, (int)count);
    put_bytes(pickle, number, count);
}

static void put_number(struct pickle *pickle, uint64_t number) {
    if (number > INT32_MAX) {
        put_long(pickle, number);
        return;
    }
    unsigned count = number < 256 ? 1 : number < 65536 ? 2 : 4;
    put_code(pickle, count == 1 ? INT1 : count == 2 ? INT2 : INT4);
    put_bytes(pickle, number, count);
}

void pickle_put_word(struct pickle *pickle, const char *key, const char *word) {
    pickle_word(pickle, key);
    pickle_word(pickle, word);
}

void pickle_put_text(struct pickle *pickle, const char *key, const char *text) {
    pickle_word(pickle, key);
    put_text(pickle, text);
}

void pickle_put_number(struct pickle *pickle, const char *key, uint64_t number) {
    pickle_word(pickle, key);
    put_number(pickle, number);
}

void pickle_put_boolean(struct pickle *pickle, const char *key, bool value) {
    pickle_word(pickle, key);
    put_code(pickle, value ? TRUE_VALUE : FALSE_VALUE);
}

void pickle_put_pair(struct pickle *pickle, const char *key, uint64_t a, uint64_t b) {
    pickle_word(pickle, key);
    put_number(pickle, a);
    put_number(pickle, b);
    put_code(pickle, PAIR);
}
