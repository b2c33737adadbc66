#include "interpose/features/gate/unseen_work.h"

#include <stdio.h>
#include <string.h>

#include "interpose/config/process.h"
#include "interpose/features/gate/only_stream.h"
#include "interpose/features/gate/unknown_tables.h"

static void hide_behind_table(const CUuuid *id) {
    char what[96];
    size_t used = (size_t)snprintf(what, sizeof what, "cuGetExportTable gave an unknown table, ");
    for (size_t i = 0; i < sizeof id->bytes; i++)
        used +=
            (size_t)snprintf(what + used, sizeof what - used, "%02x", (unsigned char)id->bytes[i]);
    bfc_only_stream_hide(what);
}

/*
 * cuGetExportTable gives tables of functions without documented names, by which NVIDIA's runtime,
 * libraries and tools call the driver. The tables in `known` are not known to submit work. Those of
 * the runtime load modules, find contexts, keep data for a context, inform tools of calls (as the
 * source of ZLUDA, 2025, says) and write the error log (libcudart 13.0 passes them format strings).
 * cuBLAS and cuFFT ask for the tables that NVIDIA names CU_ETID_ToolsContext and
 * CU_ETID_ToolsModule, which give information on contexts and modules. Only compilers (NVRTC,
 * nvJitLink, cuDNN's), which need no device, ask for the last table. Functions of any other table
 * may submit work that no hook sees.
 */
void bfc_unseen_note_table(const void **table, const CUuuid *id) {
    static const char known[][sizeof id->bytes + 1] = {
        "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9",
        "\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66",
        "\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc",
        "\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93",
        "\x26\x3e\x88\x60\x7c\xd2\x61\x43\x92\xf6\xbb\xd5\x00\x6d\xfa\x7e",
        "\xd4\x08\x20\x55\xbd\xe6\x70\x4b\x8d\x34\xba\x12\x3c\x66\xe1\xf2",
        "\xf8\xcf\xf9\x51\x21\x46\x8b\x4e\xb9\xe2\xfb\x46\x9e\x7c\x0d\xd9",
        "\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2",
        "\x6e\x16\x3f\xbe\xb9\x58\x44\x4d\x83\x5c\xe1\x82\xaf\xf1\x99\x1e",
        "\xda\x91\x51\xd3\x3a\xe6\xcc\x41\xa5\xc0\x4f\x26\xd5\x33\xe3\x28",
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (memcmp(known[i], id->bytes, sizeof id->bytes) == 0)
            return;
    if (!bfc_process_is_forked() && !bfc_unknown_table_copy(table))
        hide_behind_table(id);
}

/* A programmatic dependent launch may begin before the preceding kernel of its stream has ended. A
 * launch with an attribute that is newer than this library is handled alike, as it may overlap,
 * too. */
bool bfc_unseen_may_overlap(const CUlaunchConfig *how) {
    enum { NEWEST_ATTRIBUTE = 18 };
    for (unsigned i = 0; i < how->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &how->attrs[i];
        if ((attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
             attribute->value.programmaticStreamSerializationAllowed) ||
            (unsigned)attribute->id > NEWEST_ATTRIBUTE)
            return true;
    }
    return false;
}
