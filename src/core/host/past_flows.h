/*
 * Flows that have had posted memory, so that none of them takes any twice: a packet that the
 * network doubled and delivers late must not open its flow again when its place has been reused,
 * or it would take the memory of the next message with its tag. Of the endpoint's inside.
 *
 * Its sender may not know that it has ended, since the answer that said so was lost: so it is said
 * again of the last one of each index what that came to, if the tag is the same: generations wrap.
 *
 * A sender counts the generations of each index of its flow numbers (endpoint_impl.h). Of each peer
 * and index one entry has the generation of the last flow that ended, so those before it are known
 * as well. The table is bounded; the entry that was written first gives way. Only what has had
 * memory that was posted for its peer and tag makes an entry, so strangers cannot fill it.
 *
 * Generations have 16 bits, and a peer that starts again begins anywhere. So only those shortly
 * before the last one are past, and only for a while: who is refused by mistake asks again, as one
 * whose receiver is not ready does, and is taken then.
 */
#ifndef GW_CORE_PAST_FLOWS_H
#define GW_CORE_PAST_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

/* Generations before the last one that are past; one in 16 of those that a peer may begin with
 * (own choice). */
#define GW_PAST_FLOWS_REACH 4096
/* For how long: far above what networks delay packets by (own choice). */
#define GW_PAST_FLOWS_TIME (1 * GW_S)

struct gw_past_flow;

struct gw_past_flows {
    struct gw_past_flow *entries; /* in sets, by a hash of peer and index */
    uint32_t sets;                /* a power of two; 0: nothing is remembered, nothing is past */
};

/* How many sets have room for `flows`, and the bytes that they take. Where pairs fall is chance, so
 * there is four times the room: of as many pairs as flows one set in 4000 has too many. */
uint32_t gw_past_flows_sets(uint32_t flows);
size_t gw_past_flows_size(uint32_t sets);

/* Makes an empty table in `memory`, aligned to 8. */
void gw_past_flows_init(struct gw_past_flows *past, void *memory, uint32_t sets);

/* What a flow came to. */
struct gw_past_end {
    uint32_t tag;
    uint32_t arrived; /* packets; 0: it failed, or that is not known any more */
    uint64_t bytes;   /* payload that arrived */
};

/* A flow of the peer has ended that had memory, and was heard of last at `at`. */
void gw_past_flows_note(struct gw_past_flows *past, uint32_t peer, uint32_t flow,
                        struct gw_past_end end, gw_time at);

/* Whether a flow that is not under way has ended before, and how. */
bool gw_past_flows_has(const struct gw_past_flows *past, uint32_t peer, uint32_t flow, gw_time now,
                       struct gw_past_end *end);

#endif
