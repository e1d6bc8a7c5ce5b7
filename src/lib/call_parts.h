/*
 * The terms of a call that may lose a part: from what the application says to what the core takes,
 * and back. One for each call in work; see gradwire.h.
 */
#ifndef GW_LIB_CALL_PARTS_H
#define GW_LIB_CALL_PARTS_H

#include "core/calls/communicator.h"
#include "gradwire.h"

/* What it depends on of the job. */
struct gw_call_parts_job {
    uint32_t mtu; /* payload bytes of a packet between ranks */
    uint32_t rank, world;
    uint64_t largest; /* bytes */
};

struct gw_call_parts {
    struct gw_parts terms;
    uint64_t *important;          /* NULL, or what the application says of each fragment */
    struct gradwire_parts *told;  /* where the application wants to know; or NULL */
    struct gradwire_parts result; /* what it will be told, but for what is missing */
};

/* Elements of a fragment; of a message: bytes, as of GW_DTYPE_U8. */
size_t gw_call_parts_fragment(uint32_t mtu, enum gw_dtype type, enum gw_via via);

/*
 * Takes the terms of `call`, whose kind, type, memory, count and via are set, and lets it refer to
 * them; so *parts stays where it is until gw_call_parts_end(). A call without any keeps call->parts
 * NULL. Returns 0, or an error with its line in `error` (GW_NET_ERROR_MAX long); then nothing is to
 * be ended.
 */
int gw_call_parts_begin(struct gw_call_parts *parts, const struct gradwire_call_options *options,
                        const struct gw_call_parts_job *job, struct gw_call *call, char *error);

/* Whether the call, which is in work, tells what is missing in this memory, or in part of it. */
bool gw_call_parts_tells(const struct gw_call_parts *parts, const struct gradwire_parts *told);

/* Nothing of the call, a sum, may be missing: the application is told so now, and not by the core.
 */
void gw_call_parts_tell_all(struct gw_call_parts *parts, uint32_t world);

/* The call has ended: tells the application how many fragments are missing, and frees. `bytes` are
 * those of a message that have arrived, which may be shorter than the memory for it; else 0. */
void gw_call_parts_end(struct gw_call_parts *parts, uint64_t bytes, uint64_t missing);

#endif
