/*
 * Finds orders of execution of a dataflow graph, and the lifetimes of its tensors in such an order.
 * Inputs, outputs and workspace of a node are alive together while the node runs.
 *
 * The order min-peak keeps the peak, the most bytes that are alive at a time, low. It begins with
 * the best of the other orders and of list scheduling, which always takes the node after which live
 * memory grows least (as XLA's and IREE's schedulers do). Then a local search moves single nodes,
 * often one near the peak, to another position between the nodes that it needs and those that need
 * it, if that does not raise the peak (in the spirit of Ahn et al., SERENITY, MLSys 2020). To
 * compute the peak of one order takes time in O(n + edges).
 */
#ifndef BFC_PLAN_SCHEDULE_H
#define BFC_PLAN_SCHEDULE_H

#include "planner/model/lifetimes.h"
#include "tools/plan/graph/graph.h"

enum schedule_order { ORDER_GIVEN, ORDER_DFS, ORDER_BFS, ORDER_MIN_PEAK };

/*
 * Writes the indexes of the nodes in order of execution to `nodes`. A node runs after those that
 * write its inputs; a node that writes over an input (alias) runs after all other nodes that read
 * that input. `seconds` and `seed` are for min-peak. False: the graph has a cycle, the order of the
 * nodes in the file (ORDER_GIVEN) is impossible, or there is no memory.
 */
bool schedule(const struct graph *graph, enum schedule_order order, double seconds, uint64_t seed,
              uint32_t *nodes, struct plan_error *error);

/* Makes the lifetimes of the graph's tensors for the order `nodes`: a row for each tensor, and a
 * row NODE.workspace for each node that has workspace. */
bool schedule_lifetimes(struct lifetimes *lifetimes, const struct graph *graph,
                        const uint32_t *nodes, struct plan_error *error);

#endif
