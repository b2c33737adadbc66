// The time, and pauses. Thread-safe.
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

double sim_now_ms(void);
void sim_pause(unsigned us);

#endif
