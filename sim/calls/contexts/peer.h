// Peer access. Guarded by the lock.
#ifndef SIM_PEER_H
#define SIM_PEER_H

struct CUctx_st;

void sim_context_peers_end(struct CUctx_st *context);

#endif
