/*
 * Orders of execution of a dataflow graph, and the memory that they need: the most live bytes,
 * where inputs, outputs and workspace of a node are alive together while it runs.
 *
 * min-peak tries list scheduling that takes the ready node with the least net growth of memory, and
 * the other orders. A local search then improves the best of them: a node near the peak moves to
 * another place between its last producer and its first consumer, if that does not raise the peak
 * (XLA's and IREE's schedulers do the first part; the second after Ahn et al., SERENITY, MLSys
 * 2020, in spirit). All of it O(n + edges) an evaluation.
 */
#ifndef BFC_PLAN_SCHEDULE_H
#define BFC_PLAN_SCHEDULE_H

#include "planner/model/lifetimes.h"
#include "tools/plan/graph/graph.h"

enum schedule_order { ORDER_GIVEN, ORDER_DFS, ORDER_BFS, ORDER_MIN_PEAK };

/*
 * Writes the nodes in order of execution. A node runs after those that produce its inputs; one that
 * writes over an input (alias) runs after all others that read it. False: a cycle, a given order
 * that cannot run, no memory.
 */
bool schedule(const struct graph *graph, enum schedule_order order, double seconds, uint64_t seed,
              uint32_t *nodes, struct plan_error *error);

/* One row for each tensor, and one, NODE.workspace, for each node that has one. */
bool schedule_lifetimes(struct lifetimes *lifetimes, const struct graph *graph,
                        const uint32_t *nodes, struct plan_error *error);

#endif
