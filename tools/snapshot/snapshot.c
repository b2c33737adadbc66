#include "tools/snapshot/snapshot.h"

void snapshot_put_no_frames(struct pickle *pickle) {
    struct pickle_list frames = pickle_list(pickle);
    pickle_list_end(pickle, &frames);
}

void snapshot_put_frame(struct pickle *pickle, struct pickle_list *frames, const char *name,
                        const char *file, uint64_t line) {
    pickle_item(pickle, frames);
    pickle_dict(pickle);
    pickle_put_text(pickle, "name", name);
    pickle_put_word(pickle, "filename", file);
    pickle_put_number(pickle, "line", line);
    pickle_dict_end(pickle);
}

void snapshot_begin_segment(struct pickle *pickle, const struct snapshot_segment *segment) {
    pickle_dict(pickle);
    pickle_put_number(pickle, "device", segment->device);
    pickle_put_number(pickle, "address", segment->address);
    pickle_put_number(pickle, "total_size", segment->size);
    pickle_put_number(pickle, "allocated_size", segment->allocated);
    pickle_put_number(pickle, "active_size", segment->active);
    pickle_put_number(pickle, "requested_size", segment->requested);
    pickle_put_number(pickle, "stream", 0);
    pickle_put_word(pickle, "segment_type", "large");
    pickle_put_pair(pickle, "segment_pool_id", 0, 0);
    pickle_put_boolean(pickle, "is_expandable", segment->expandable);
    pickle_word(pickle, "frames");
    snapshot_put_no_frames(pickle);
    pickle_word(pickle, "blocks");
}

void snapshot_begin_block(struct pickle *pickle, const struct snapshot_block *block) {
    static const char *const states[] = {[SNAPSHOT_ALLOCATED] = "active_allocated",
                                         [SNAPSHOT_PENDING] = "active_pending_free",
                                         [SNAPSHOT_INACTIVE] = "inactive"};
    pickle_dict(pickle);
    pickle_put_number(pickle, "address", block->address);
    pickle_put_number(pickle, "size", block->size);
    pickle_put_number(pickle, "requested_size", block->requested);
    pickle_put_word(pickle, "state", states[block->state]);
    pickle_word(pickle, "frames");
}

void snapshot_begin_call(struct pickle *pickle, const struct snapshot_call *call) {
    pickle_dict(pickle);
    pickle_put_word(pickle, "action", call->action);
    pickle_put_number(pickle, call->fails ? "device_free" : "addr", call->address);
    pickle_put_number(pickle, "size", call->size);
    pickle_put_number(pickle, "stream", 0);
    pickle_put_number(pickle, "time_us", call->us);
    pickle_word(pickle, "frames");
}
