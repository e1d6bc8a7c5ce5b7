/*
 * What applications hand over and get back: tensors, and the types of their elements.
 */
#ifndef GW_CORE_TENSOR_H
#define GW_CORE_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* The user's element types; floats are in the machine's byte order, as the integers are. */
enum gw_dtype {
    GW_DTYPE_F32,
    GW_DTYPE_F16,  /* IEEE binary16 */
    GW_DTYPE_BF16, /* the upper half of a float32 */
    GW_DTYPE_I32,
    GW_DTYPES,
    GW_DTYPE_FLOATS = GW_DTYPE_I32, /* types below this one are floats */
};

/* Bytes of one element of the user's tensor. */
static inline uint32_t gw_dtype_size(enum gw_dtype type)
{
    return type == GW_DTYPE_F16 || type == GW_DTYPE_BF16 ? 2 : 4;
}

/* A tensor to sum over all workers, element by element. Every worker must reduce the same row. */
struct gw_tensor {
    const void *in; /* unchanged until the event; NULL: no payload (simulation) */
    void *out;      /* may be `in`; its contents are undefined after GW_EVENT_FAILED */
    uint64_t count; /* elements, at least 1 */
    enum gw_dtype type;
    bool average;
    uint32_t tag; /* comes back in the event */
};

#endif
