/* Computes and verifies the check values of the messages in which pages are requested and sent, and
 * names the importers' sockets. */
#include "interpose/features/share/page_message.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/shared_folder.h"
#include "interpose/features/share/siphash.h"
#include "segment/left_over.h"

enum {
    REQUEST_SEALED = offsetof(struct bfc_page_request, check),
    REPLY_SEALED = offsetof(struct bfc_page_reply, check),
};

static uint64_t request_check(const uint8_t key[16], const struct bfc_page_request *request) {
    return bfc_siphash(key, request, REQUEST_SEALED);
}

void bfc_page_request_seal(const uint8_t key[16], struct bfc_page_request *request) {
    request->check = request_check(key, request);
}

bool bfc_page_request_is_intact(const uint8_t key[16], const struct bfc_page_request *request) {
    return request->check == request_check(key, request);
}

static uint64_t reply_check(const uint8_t key[16], const struct bfc_page_request *request,
                            const struct bfc_page_reply *reply) {
    uint8_t sealed[sizeof *request + REPLY_SEALED];
    memcpy(sealed, request, sizeof *request);
    memcpy(sealed + sizeof *request, reply, REPLY_SEALED);
    return bfc_siphash(key, sealed, sizeof sealed);
}

void bfc_page_reply_seal(const uint8_t key[16], const struct bfc_page_request *request,
                         struct bfc_page_reply *reply) {
    reply->check = reply_check(key, request, reply);
}

bool bfc_page_reply_is_intact(const uint8_t key[16], const struct bfc_page_request *request,
                              const struct bfc_page_reply *reply) {
    return reply->count <= BFC_LOCAL_FILES && reply->check == reply_check(key, request, reply);
}

void bfc_page_caller_prefix(char name[BFC_CALLER_NAME], const struct bfc_token *token) {
    snprintf(name, BFC_CALLER_NAME, BFC_TABLE_NAME_FORMAT ".", getuid(),
             (unsigned long long)token->pid_namespace, token->pid,
             (unsigned long long)token->table);
}

void bfc_page_caller_path(char path[BFC_CALLER_NAME], const struct bfc_token *token,
                          uint64_t number) {
    char prefix[BFC_CALLER_NAME];
    bfc_page_caller_prefix(prefix, token);
    snprintf(path, BFC_CALLER_NAME, "%.*s/%.100s%016llx", (int)sizeof BFC_SHARED_FOLDER,
             BFC_SHARED_FOLDER, prefix, (unsigned long long)number);
}
