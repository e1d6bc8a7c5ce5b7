/*
 * What the calls of a communicator must give, computed plainly.
 *
 * An element is a small number times a power of two that all ranks share, such that every sum,
 * average and product of all ranks' elements is exact in the type, and so the same whichever way it
 * is computed: by integers or raw in switches, by a server or around a ring.
 */
#ifndef GW_TESTS_CALL_MODEL_H
#define GW_TESTS_CALL_MODEL_H

#include "core/calls/communicator.h"

enum {
    GW_CALL_MODEL_RANKS_MAX = 8,  /* that sums are exact for */
    GW_CALL_MODEL_PUSHES_MAX = 8, /* to one key: each is a bit of its value */
};

/* A call as all ranks know it. */
struct gw_model_call {
    enum gw_call_kind kind; /* GW_CALL_SEND: a message, which the other end receives */
    enum gw_via via;
    enum gw_dtype type;
    enum gw_op op;
    uint64_t count;   /* as in struct gw_call */
    uint32_t from;    /* root; of the others: the rank that sends, pushes or pulls */
    uint32_t to;      /* of a message */
    uint64_t key;     /* of a value */
    uint32_t push;    /* number of a push among those to its key */
    bool is_in_place; /* of an all-reduce */
    bool is_odd;      /* a push or pull of another count than the value's: refused */
    bool has_parts;   /* it may lose some, see parts_model.h */
    gw_q16 bound, bound_pull;
    uint64_t seed; /* of its values; even: integers in switches have no room for some */
};

static inline bool gw_model_call_is_collective(const struct gw_model_call *call)
{
    return call->kind < GW_CALL_SEND;
}

/* Whether the rank has a part in it. */
bool gw_model_call_has(const struct gw_model_call *call, uint32_t rank);

/* Whether it is a sum that its via (not the default) cannot do. */
bool gw_model_call_is_rerouted(const struct gw_model_call *call);

/* Bytes of memory that a rank needs for it; 0: none. */
size_t gw_model_call_in_size(const struct gw_model_call *call, uint32_t world, uint32_t rank);
size_t gw_model_call_out_size(const struct gw_model_call *call, uint32_t world, uint32_t rank);

/* What the rank brings, in the memory that the call reads. */
void gw_model_call_fill(const struct gw_model_call *call, uint32_t world, uint32_t rank, void *in);

/* What `out` must be in the end. Not for a pull. */
void gw_model_call_expect(const struct gw_model_call *call, uint32_t world, uint32_t rank,
                          void *out);

/* Which pushes the value holds that a pull gave, as bits; false: not the same ones everywhere, or
 * none that there can be. */
bool gw_model_call_pushes(const struct gw_model_call *call, const void *out, uint32_t *pushes);

#endif
