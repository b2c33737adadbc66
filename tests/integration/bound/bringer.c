// Needs the driver on behalf of another library, which uses it and does not say so.
extern int cuInit(unsigned), plugin_run(const char *);
int (*bringer_driver)(unsigned) = cuInit;
int (*bringer_library)(const char *) = plugin_run;
