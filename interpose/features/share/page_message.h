/*
 * The messages between importer and exporter of a block that lies in pages.
 *
 * The importer listens on a socket in the folder of the exporter's table and wakes the exporter
 * (interpose/features/share/wakeup.h), which connects. Then the importer requests the pages, a
 * batch at a time, and gets their descriptors. Both prove that they know the token's key without
 * sending it. Messages are in the machine's own layout, since both processes run on one machine.
 *
 * No function here calls the system.
 */
#ifndef BFC_INTERPOSE_PAGE_MESSAGE_H
#define BFC_INTERPOSE_PAGE_MESSAGE_H

#include "interpose/features/share/token.h"
#include "interpose/host/local_socket.h"

struct bfc_page_request {
    uint64_t table, generation; /* the token's */
    uint64_t nonce;             /* random, so that an old reply does not match */
    uint64_t first;             /* index of the first page that is wanted */
    uint64_t check;             /* over the fields before it, under the token's key */
};

struct bfc_page_reply {
    uint64_t count;  /* descriptors that come with the reply, 1 to BFC_LOCAL_FILES; 0: refused */
    uint64_t result; /* the driver's CUresult */
    uint64_t bytes[BFC_LOCAL_FILES]; /* bytes of each page */
    uint64_t check; /* over the request and the fields before it, under the token's key */
};

void bfc_page_request_seal(const uint8_t key[16], struct bfc_page_request *request);
bool bfc_page_request_is_intact(const uint8_t key[16], const struct bfc_page_request *request);

void bfc_page_reply_seal(const uint8_t key[16], const struct bfc_page_request *request,
                         struct bfc_page_reply *reply);
bool bfc_page_reply_is_intact(const uint8_t key[16], const struct bfc_page_request *request,
                              const struct bfc_page_reply *reply);

/* The name of an importer's socket: the name of the exporter's table (which `token` names), a dot
 * and a number. */
enum { BFC_CALLER_NAME = 128 };
void bfc_page_caller_prefix(char name[BFC_CALLER_NAME], const struct bfc_token *token);
void bfc_page_caller_path(char path[BFC_CALLER_NAME], const struct bfc_token *token,
                          uint64_t number);

#endif
