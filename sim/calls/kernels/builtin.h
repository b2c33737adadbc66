// Host code of the kernels in kernels.cu.
#ifndef SIM_BUILTIN_H
#define SIM_BUILTIN_H

struct sim_launch;

struct sim_builtin {
    const char *name;
    int (*code)(const struct sim_launch *launch);
};
extern const struct sim_builtin sim_builtins[]; // ends with a NULL name

#endif
