/*
 * What applications hand over and get back: tensors, the types of their elements, and what is to be
 * made of the elements of all workers.
 */
#ifndef GW_CORE_TENSOR_H
#define GW_CORE_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fixed.h"

/* The user's element types; floats are in the machine's byte order, as the integers are. */
enum gw_dtype {
    GW_DTYPE_F32,
    GW_DTYPE_F16,  /* IEEE binary16 */
    GW_DTYPE_BF16, /* the upper half of a float32 */
    GW_DTYPE_I32,
    GW_DTYPE_F64,
    GW_DTYPE_I64,
    GW_DTYPE_U8,
    GW_DTYPES,
    GW_DTYPE_SUMMABLE = GW_DTYPE_F64,   /* types below this one are those that switches can sum */
    GW_DTYPE_FLOATS = GW_DTYPE_I32,     /* and those below this one are floats */
    GW_DTYPE_MAGNITUDES = GW_DTYPE_I64, /* types below this one are large or small: gradients */
};

/* What one element is made of those of all workers. */
enum gw_op {
    GW_OP_SUM,
    GW_OP_AVERAGE, /* of floats and, rounded, of int32 */
    GW_OP_MIN,
    GW_OP_MAX,
    GW_OP_PRODUCT,
    GW_OPS,
    GW_OP_AND = GW_OPS, /* of the bits of uint8; not for callers, see ranks/coll_agreement.c */
};

/* Bytes of one element of the user's tensor. */
static inline uint32_t gw_dtype_size(enum gw_dtype type)
{
    static const uint8_t sizes[GW_DTYPES] = {4, 2, 2, 4, 8, 8, 1};
    return sizes[type];
}

static inline bool gw_dtype_is_float(enum gw_dtype type)
{
    return type < GW_DTYPE_FLOATS || type == GW_DTYPE_F64;
}

/* Whether switches can sum the type. */
static inline bool gw_dtype_by_switch(enum gw_dtype type)
{
    return type < GW_DTYPE_SUMMABLE;
}

/* Whether there is such an operation. */
static inline bool gw_op_exists(enum gw_op op, enum gw_dtype type)
{
    bool averages = gw_dtype_is_float(type) || type == GW_DTYPE_I32;
    return op < GW_OPS && type < GW_DTYPES && (op != GW_OP_AVERAGE || averages);
}

/* Whether a sum through switches can do this. */
static inline bool gw_op_by_switch(enum gw_op op, enum gw_dtype type)
{
    return (op == GW_OP_SUM || op == GW_OP_AVERAGE) && gw_dtype_by_switch(type);
}

/* A tensor to sum over all workers, element by element. Every worker must reduce the same row. */
struct gw_tensor {
    const void *in; /* unchanged until the event; NULL: no payload (simulation) */
    void *out;      /* may be `in`; its contents are undefined after GW_EVENT_FAILED */
    uint64_t count; /* elements, at least 1 */
    enum gw_dtype type;
    enum gw_op op;
    uint32_t tag; /* comes back in the event */
    /* Of sums by a server: of each worker's fragments at most this part may be left out, equal on
     * all workers, else the least counts; in steps of 1/200, rounded down. 0: none. */
    gw_q16 bound;
    uint16_t *counts; /* of each fragment: the workers whose values are in its sum; or NULL */
};

#endif
