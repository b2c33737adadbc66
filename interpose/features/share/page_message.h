/*
 * What an importer and an exporter say to each other about a block that lies in pages.
 *
 * The importer waits at a socket beside the exporter's table and rings the table's wakeup
 * (interpose/features/share/wakeup.h); the exporter calls him there. Then the importer asks for
 * some pages after the others, and gets their descriptors. Both show that they know the token's
 * key, and do not say it. Messages are in the machine's own layout: both run on one machine.
 *
 * Pure.
 */
#ifndef BFC_INTERPOSE_PAGE_MESSAGE_H
#define BFC_INTERPOSE_PAGE_MESSAGE_H

#include "interpose/features/share/token.h"
#include "interpose/host/local_socket.h"

struct bfc_page_request {
    uint64_t table, generation; /* the token's */
    uint64_t nonce;             /* random: an old reply does not fit */
    uint64_t first;             /* which page of the block's, from 0 on */
    uint64_t check;             /* over all before, under the token's key */
};

struct bfc_page_reply {
    uint64_t count;  /* of the descriptors that come with it, 1 to BFC_LOCAL_FILES; 0: refused */
    uint64_t result; /* a CUresult: why */
    uint64_t bytes[BFC_LOCAL_FILES]; /* of each page */
    uint64_t check;                  /* over request and reply, under the token's key */
};

void bfc_page_request_seal(const uint8_t key[16], struct bfc_page_request *request);
bool bfc_page_request_is_intact(const uint8_t key[16], const struct bfc_page_request *request);

void bfc_page_reply_seal(const uint8_t key[16], const struct bfc_page_request *request,
                         struct bfc_page_reply *reply);
bool bfc_page_reply_is_intact(const uint8_t key[16], const struct bfc_page_request *request,
                              const struct bfc_page_reply *reply);

/* The name of a caller's socket is that of the exporter's table (which `token` names), a dot and a
 * number. */
enum { BFC_CALLER_NAME = 128 };
void bfc_page_caller_prefix(char name[BFC_CALLER_NAME], const struct bfc_token *token);
void bfc_page_caller_path(char path[BFC_CALLER_NAME], const struct bfc_token *token,
                          uint64_t number);

#endif
