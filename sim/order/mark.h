// Sets of moments in streams' orders. Guarded by the lock.
#ifndef SIM_MARK_H
#define SIM_MARK_H

#include "sim/base/work.h"

void sim_marks_add(struct sim_marks *marks, struct CUstream_st *stream, uint64_t upto);
void sim_marks_join(struct sim_marks *marks, const struct sim_marks *more);
bool sim_marks_complete(struct sim_marks *marks); // forgets what is complete
void sim_marks_drop(struct sim_marks *marks);
void sim_context_marks(const struct CUctx_st *context, struct sim_marks *marks); // all its streams

#endif
