// Numbers that are never given out again. Guarded by the lock.
#ifndef SIM_IDS_H
#define SIM_IDS_H

unsigned long long sim_next_buffer_id(void);
unsigned long long sim_next_context_id(void);

#endif
