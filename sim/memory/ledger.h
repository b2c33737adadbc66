// Which exported allocations still live, for other processes to read. Guarded by the lock.
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct sim_allocation;

bool sim_ledger_enter(struct sim_allocation *allocation); // false: no room
void sim_ledger_forget(const struct sim_allocation *allocation);
int sim_ledger_file(void);

#endif
