/*
 * The messages between the process that imports a block that lies in pages and the process that
 * exports it.
 *
 * The importer listens on a socket in the folder of the exporter's table and wakes the exporter
 * (token_table.h), which connects. Then each request of the importer is answered with file
 * descriptors of the next pages, as many as a message carries. Both prove that they know the
 * token's key without sending it. Messages have the machine's own layout, as both processes run on
 * one machine.
 */
#ifndef BFC_INTERPOSE_PAGE_MESSAGE_H
#define BFC_INTERPOSE_PAGE_MESSAGE_H

#include "interpose/features/share/local_socket.h"
#include "interpose/features/share/token.h"

struct bfc_page_request {
    uint64_t table, generation; /* the fields of the same names in the token */
    uint64_t nonce;             /* random, so that a reply to an earlier request is not accepted */
    uint64_t first;             /* index within the block of the first page that is wanted */
    uint64_t check;             /* SipHash of the fields above, with the token's key */
};

struct bfc_page_reply {
    uint64_t count;  /* file descriptors that come with the reply, 1 to BFC_LOCAL_FILES; 0: the
                        exporter refuses */
    uint64_t result; /* the CUresult of the exporter's driver */
    uint64_t bytes[BFC_LOCAL_FILES]; /* the size in bytes of each page that is sent */
    uint64_t check; /* SipHash of the request and the fields above, with the token's key */
};

void bfc_page_request_seal(const uint8_t key[16], struct bfc_page_request *request);
bool bfc_page_request_is_intact(const uint8_t key[16], const struct bfc_page_request *request);

void bfc_page_reply_seal(const uint8_t key[16], const struct bfc_page_request *request,
                         struct bfc_page_reply *reply);
bool bfc_page_reply_is_intact(const uint8_t key[16], const struct bfc_page_request *request,
                              const struct bfc_page_reply *reply);

/* An importer listens on a socket whose name is that of the exporter's table, a dot and a random
 * number. bfc_page_caller_prefix makes the part up to and including the dot, by which the exporter
 * finds the sockets. */
enum { BFC_CALLER_NAME = 128 };
void bfc_page_caller_prefix(char name[BFC_CALLER_NAME], const struct bfc_token *token);
void bfc_page_caller_path(char path[BFC_CALLER_NAME], const struct bfc_token *token,
                          uint64_t number);

struct bfc_page_fetch {
    struct bfc_token token;
    struct bfc_local exporter; /* the connection to the exporter, to be closed by bfc_local_end */
    uint64_t next;             /* index of the next page to fetch */
};

enum bfc_fetch_answer {
    BFC_FETCH_DONE,
    BFC_FETCH_SILENT,  /* the exporter has ended, or does not answer */
    BFC_FETCH_STALE,   /* the exporter has freed the block */
    BFC_FETCH_REFUSED, /* the exporter's driver has not exported the pages */
    BFC_FETCH_FAILED,  /* this process cannot open a socket or descriptor: errno says why */
};

/* Opens a socket, to which the exporter of the token connects, and waits for the connection, some
 * seconds at most. After that, removes the socket from the shared folder. If an importer is killed
 * before, the exporter removes its socket. */
enum bfc_fetch_answer bfc_page_fetch_begin(struct bfc_page_fetch *fetch,
                                           const struct bfc_token *token);

/* Fetches the next pages of the block: `reply->count` file descriptors in `files`, which the caller
 * closes. */
enum bfc_fetch_answer bfc_page_fetch_next(struct bfc_page_fetch *fetch,
                                          struct bfc_page_reply *reply, int files[BFC_LOCAL_FILES]);

#endif
