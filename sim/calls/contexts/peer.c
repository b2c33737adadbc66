// Peer access: which contexts' kernels may reach which other devices' memory. Copies always may.
#include "sim/calls/contexts/peer.h"

#include "sim/base/options.h"
#include "sim/border/border.h"
#include "sim/device/contexts.h"
#include "sim/device/devices.h"
#include "sim/device/thread.h"

#include <stdlib.h>

static struct CUctx_st **find(struct CUctx_st *context, const struct CUctx_st *peer) {
    for (size_t i = 0; i < context->peer_count; i++) {
        if (context->peers[i] == peer) {
            return &context->peers[i];
        }
    }
    return NULL;
}

static CUresult can(int *out, CUdevice device, CUdevice peer) {
    if (sim_device_of(device) == NULL || sim_device_of(peer) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = device != peer && sim_options.peers;
    return CUDA_SUCCESS;
}

static CUresult enable(struct CUctx_st *peer, unsigned flags) {
    struct CUctx_st *context = sim_current();
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (peer == NULL || !sim_context_known(peer) || !peer->alive || peer == context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (peer->device == context->device || !sim_options.peers) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    if (find(context, peer) != NULL) {
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    struct CUctx_st **grown =
        realloc(context->peers, (context->peer_count + 1) * sizeof(struct CUctx_st *));
    if (grown == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->peers = grown;
    context->peers[context->peer_count++] = peer;
    return CUDA_SUCCESS;
}

static CUresult disable(const struct CUctx_st *peer) {
    struct CUctx_st *context = sim_current();
    if (peer == NULL || !sim_context_known((CUcontext)(uintptr_t)peer)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct CUctx_st **at = find(context, peer);
    if (at == NULL) {
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    *at = context->peers[--context->peer_count];
    return CUDA_SUCCESS;
}

static void forget(struct CUctx_st *context, const struct CUctx_st *peer) {
    struct CUctx_st **at = find(context, peer);
    if (at != NULL) {
        *at = context->peers[--context->peer_count];
    }
}

// A context's end takes what it was given and what was given for it.
void sim_context_peers_end(struct CUctx_st *context) {
    for (struct CUctx_st *other = sim_context_next(NULL); other != NULL;
         other = sim_context_next(other)) {
        forget(other, context);
    }
    free(context->peers);
    context->peers = NULL;
    context->peer_count = 0;
}

SIM_CALL(cuDeviceCanAccessPeer, SIM_READY, (int *out, CUdevice device, CUdevice peer),
         can(out, device, peer))
SIM_CALL(cuCtxEnablePeerAccess, SIM_CURRENT, (CUcontext peer, unsigned flags), enable(peer, flags))
SIM_CALL(cuCtxDisablePeerAccess, SIM_CURRENT, (CUcontext peer), disable(peer))

static CUresult attribute(int *out, CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
    if (which < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (from == to) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    CUresult result = can(out, from, to);
    if (result == CUDA_SUCCESS && which == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK) {
        *out = 0;
    }
    return result;
}

SIM_CALL(cuDeviceGetP2PAttribute, SIM_READY,
         (int *out, CUdevice_P2PAttribute which, CUdevice from, CUdevice to),
         attribute(out, which, from, to))
