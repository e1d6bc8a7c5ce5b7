/*
 * The row of tensors that a worker has in work: which fragment is which piece of which tensor.
 *
 * Tensors are cut into fragments of `values` elements with consecutive numbers, each tensor's
 * behind those of the one before. Fragments get their results in any order; tensors leave the row
 * in the order in which they came.
 */
#ifndef GW_CORE_TENSOR_ROW_H
#define GW_CORE_TENSOR_ROW_H

#include <stddef.h>

#include "base/assert.h"
#include "base/index_queue.h"
#include "core/quant/scale.h"
#include "core/tensor.h"

enum {
    /* In work at the same time: their numbers, and a pool's behind them, compare. */
    GW_ROW_FRAGMENTS_MAX = INT32_MAX / 2,
};

struct gw_row_tensor {
    struct gw_tensor tensor;
    struct gw_scale scale;
    uint32_t key;
    uint32_t first; /* number of its first fragment */
    uint32_t fragments;
    uint32_t results; /* fragments that have theirs */
    uint32_t lacking; /* of these, the ones that lack workers */
    uint32_t losses;  /* that were found here, and not taken for congestion */
    uint8_t bound;    /* as gradients say it, see agg_bound.h */
    bool is_spoilt;   /* a sum did not fit */
};

struct gw_tensor_row {
    struct gw_row_tensor *tensors;
    struct gw_index_queue queue; /* over them */
    uint32_t values;             /* elements per fragment */
    uint32_t end;                /* number behind the last fragment */
};

/* Bytes of memory for gw_tensor_row_init(). */
size_t gw_tensor_row_size(uint32_t tensors_max);

/* An empty row in `memory`, aligned to 8. */
void gw_tensor_row_init(struct gw_tensor_row *row, void *memory, uint32_t tensors_max,
                        uint32_t values, uint32_t first_seq);

/*
 * Appends a tensor of a job of `world` workers; floats travel with the scale that
 * `scale_exponent` names (core/quant/scale.h).
 * Returns 0, GW_ERR_NO_ROOM, or GW_ERR_INVALID.
 */
int gw_tensor_row_push(struct gw_tensor_row *row, const struct gw_tensor *tensor,
                       int scale_exponent, uint32_t world);

/* Tensors in the row. */
static inline uint32_t gw_tensor_row_count(const struct gw_tensor_row *row)
{
    return row->queue.count;
}

/* The number of the next tensor's first fragment is `seq`; the row must be empty. */
static inline void gw_tensor_row_restart(struct gw_tensor_row *row, uint32_t seq)
{
    GW_ASSERT(row->queue.count == 0);
    row->end = seq;
}

/* The oldest tensor, or NULL. */
static inline struct gw_row_tensor *gw_tensor_row_first(const struct gw_tensor_row *row)
{
    return row->queue.count ? &row->tensors[row->queue.head] : NULL;
}

/* Removes the oldest tensor; there must be one. */
void gw_tensor_row_pop(struct gw_tensor_row *row);

/* The tensor of fragment `seq`, or NULL. */
static inline struct gw_row_tensor *gw_tensor_row_find(const struct gw_tensor_row *row,
                                                       uint32_t seq)
{
    for (uint32_t i = 0; i < row->queue.count; i++) {
        struct gw_row_tensor *tensor = &row->tensors[gw_index_queue_at(&row->queue, i)];
        if (seq - tensor->first < tensor->fragments)
            return tensor;
    }
    return NULL;
}

/* Elements of the tensor's fragment `seq`. */
static inline uint32_t gw_tensor_row_values(const struct gw_tensor_row *row,
                                            const struct gw_row_tensor *tensor, uint32_t seq)
{
    uint64_t left = tensor->tensor.count - (uint64_t)(seq - tensor->first) * row->values;
    return left < row->values ? (uint32_t)left : row->values;
}

/* The tensor's fragments from its fragment `seq` on that have all their elements: all, or all but
 * the last. */
static inline uint32_t gw_tensor_row_whole(const struct gw_tensor_row *row,
                                           const struct gw_row_tensor *tensor, uint32_t seq)
{
    uint64_t left = tensor->tensor.count - (uint64_t)(seq - tensor->first) * row->values;
    return (uint32_t)(left / row->values);
}

/* Bytes of the tensor before its fragment `seq`. */
static inline size_t gw_tensor_row_offset(const struct gw_tensor_row *row,
                                          const struct gw_row_tensor *tensor, uint32_t seq)
{
    return (size_t)(seq - tensor->first) * row->values * gw_dtype_size(tensor->tensor.type);
}

#endif
