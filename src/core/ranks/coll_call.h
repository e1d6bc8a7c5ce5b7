/*
 * One call of coll_run.h: what its schedule works on, where that lies, and how it is cut.
 *
 * A schedule knows one vector (coll/coll.h). Of an all-gather or reduce-scatter that is `count`
 * elements for each rank, so that all chunks are equal; else it is the tensor.
 */
#ifndef GW_CORE_COLL_CALL_H
#define GW_CORE_COLL_CALL_H

#include "core/coll/coll.h"
#include "core/parts.h"
#include "core/tensor.h"

enum {
    /* Workers that agree by sending to each other. More would need ways, and memory, for too many
     * others, and go by ring. */
    GW_COLL_AGREEMENT_DIRECT = 32,
    GW_COLL_AGREEMENT_SEGMENT = 8192, /* bytes of a message of an agreement: 64k fragments */
};

struct gw_coll_row;

/*
 * What is to be done: equal on all workers but for the memory. `in` is not written, unless `out` is
 * there. With world workers:
 *
 *   all-reduce      in, out: count elements; may be the same
 *   reduce-scatter  in: world * count; out: count, may be the rank's part of `in`
 *   all-gather      in: count, may be the rank's part of `out`; out: world * count
 *   broadcast       in, at the root alone: count, may be `out`; out: count
 *   reduce          in: count; out, at the root alone: count, may be `in`
 *
 * Else they do not overlap. All-gather and broadcast have no op.
 */
struct gw_coll_call {
    const struct gw_coll_ops *coll;
    struct gw_tensor tensor; /* its tag is the first of the call's */
    uint32_t root;           /* of a broadcast or reduce; else 0 */
    /* Of a reduce-scatter or all-gather without parts: elements from the part of one worker to that
     * of the next in the larger memory, at least `count`, so that others may lie between. 0: count.
     */
    uint64_t stride;
    /*
     * NULL: nothing may be missing. Else bounds, keeps_own and whether fragments may be missing of
     * results at all are equal on all workers as far as they are 0; of other bounds the stricter
     * holds on each hop. With payload `arrived` and `counts` are there, for each fragment of `out`.
     * Of an all-gather or reduce-scatter each rank's part begins with a fragment.
     */
    const struct gw_parts *parts;
    uint32_t fragment; /* with parts: elements of one, as fill a packet; equal on all workers */
};

/* Which of the workers one is. */
struct gw_coll_seat {
    uint32_t rank, world;
};

/* Whether there is such a call, and its memory is there or, without payload, is not. */
bool gw_coll_call_is_valid(const struct gw_coll_call *call, struct gw_coll_seat seat,
                           bool has_payload);

/*
 * Tags that the call uses, from tensor.tag on: for each round as many as the largest step has
 * segments, which have `segment` bytes at the most, and those of its agreement. UINT64_MAX: an
 * element, or a fragment, is larger.
 */
uint64_t gw_coll_call_tags(const struct gw_coll_call *call, uint32_t world, uint32_t segment,
                           uint32_t flows);

/* Makes the row of a valid call. Returns 0, or GW_ERR_INVALID: an element or fragment is larger
 * than a segment, or the row would use 2^32 tags or more. */
int gw_coll_call_row(const struct gw_coll_call *call, struct gw_coll_seat seat, uint32_t segment,
                     uint32_t flows, struct gw_coll_row *row);

/* Where an element of the vector is read, and where its result is written. */
const unsigned char *gw_coll_call_in(const struct gw_coll_call *call, uint64_t element);
unsigned char *gw_coll_call_out(const struct gw_coll_call *call, uint32_t rank, uint64_t element);

/* With parts: fragments of `out` of all workers who have one, and the one that begins at an element
 * of the vector, as counted at this worker. */
uint64_t gw_coll_call_fragments(const struct gw_coll_call *call, uint32_t world);
uint64_t gw_coll_call_fragment(const struct gw_coll_call *call, uint32_t rank, uint64_t element);

/*
 * With parts: whether its workers agree on what is missing, so that it is missing at all of them:
 * by an all-reduce of their masks of fragments, which *agreement then is, without memory and tag.
 */
bool gw_coll_call_agrees(const struct gw_coll_call *call, uint32_t world,
                         struct gw_coll_call *agreement);

/* Bytes of memory there. */
uint64_t gw_coll_call_in_size(const struct gw_coll_call *call, struct gw_coll_seat seat);
uint64_t gw_coll_call_out_size(const struct gw_coll_call *call, struct gw_coll_seat seat);

/* Puts into `out` what the worker has of it from the start. */
void gw_coll_call_begin(const struct gw_coll_call *call, struct gw_coll_seat seat);

#endif
