/* How a hook is declared and defined. */
#ifndef BFC_INTERPOSE_DEFINE_HOOK_H
#define BFC_INTERPOSE_DEFINE_HOOK_H

/*
 * A hook is a local function, to which the tables lead. It is exported by the driver's name as
 * well, with the hidden version that symbols.map explains, and only for dladdr.
 */
#define BFC_HOOK_DECLARED(name, arguments)                                                         \
    __attribute__((visibility("hidden"))) CUresult hook_##name arguments __asm__("hook_" #name)
#define BFC_HOOK(name, arguments)                                                                  \
    CUresult bfc_export_##name arguments                                                           \
        __attribute__((visibility("default"), alias("hook_" #name)));                              \
    __asm__(".symver bfc_export_" #name ", " #name "@BFC_BOUND");                                  \
    BFC_HOOK_DECLARED(name, arguments);                                                            \
    CUresult hook_##name arguments

#endif
