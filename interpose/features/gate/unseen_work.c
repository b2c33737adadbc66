#include "interpose/features/gate/unseen_work.h"

#include <stdio.h>
#include <string.h>

#include "interpose/features/gate/only_stream.h"

static void hide_behind_table(const CUuuid *id) {
    char what[96];
    size_t used = (size_t)snprintf(what, sizeof what, "cuGetExportTable gave an unknown table, ");
    for (size_t i = 0; i < sizeof id->bytes; i++)
        used +=
            (size_t)snprintf(what + used, sizeof what - used, "%02x", (unsigned char)id->bytes[i]);
    bfc_only_stream_hide(what);
}

/*
 * Tables of functions without names, by which NVIDIA's runtime, libraries and tools call the
 * driver. Those that the runtime and cuBLAS ask for are not known to submit work. They load
 * modules, find contexts and keep what belongs to one, tell tools of calls (ids and what they hold:
 * the source of ZLUDA, 2025), write the error log (libcudart 13.0 only hands that one formats with
 * arguments), and tell a context's device and number (cuBLAS). Any other table may submit work.
 */
void bfc_unseen_note_table(const CUuuid *id) {
    static const unsigned char known[][sizeof id->bytes] = {
        {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
         0xf9},
        {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
         0x66},
        {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
         0xdc},
        {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
         0x93},
        {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
         0x7e},
        {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
         0xf2},
        {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d,
         0xd9},
        {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
         0xf2},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (memcmp(known[i], id->bytes, sizeof id->bytes) == 0)
            return;
    hide_behind_table(id);
}

/* A programmatic dependent launch may begin before the preceding kernel has ended. The meaning of
 * attributes that are newer than this library is not known. */
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
