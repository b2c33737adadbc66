/* SipHash-2-4: two rounds for each word of eight bytes, and four rounds at the end. */
#include "interpose/features/share/siphash.h"

#include <string.h>

struct state {
    uint64_t a, b, c, d; /* the state, named v0 to v3 in the paper */
};

static uint64_t rotate_left(uint64_t word, int by) {
    return word << by | word >> (64 - by);
}

static void mix_rounds(struct state *s, int rounds) {
    while (rounds-- > 0) {
        s->a += s->b;
        s->c += s->d;
        s->b = rotate_left(s->b, 13) ^ s->a;
        s->d = rotate_left(s->d, 16) ^ s->c;
        s->a = rotate_left(s->a, 32);
        s->c += s->b;
        s->a += s->d;
        s->b = rotate_left(s->b, 17) ^ s->c;
        s->d = rotate_left(s->d, 21) ^ s->a;
        s->c = rotate_left(s->c, 32);
    }
}

/* Reads a word in little-endian order, as the paper defines it. */
static uint64_t read_word(const uint8_t *bytes, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static void absorb_word(struct state *s, uint64_t word) {
    s->d ^= word;
    mix_rounds(s, 2);
    s->a ^= word;
}

uint64_t bfc_siphash(const uint8_t key[16], const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint64_t low = read_word(key, 8), high = read_word(key + 8, 8);
    struct state s = {low ^ UINT64_C(0x736f6d6570736575), high ^ UINT64_C(0x646f72616e646f6d),
                      low ^ UINT64_C(0x6c7967656e657261), high ^ UINT64_C(0x7465646279746573)};
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8)
        absorb_word(&s, read_word(at, 8));
    absorb_word(&s, read_word(at, left) | (uint64_t)size << 56);
    s.c ^= 0xff;
    mix_rounds(&s, 4);
    return s.a ^ s.b ^ s.c ^ s.d;
}
