/* A worker's row of tensors; see tensor_row.h. */
#include "core/aggregation/tensor_row.h"

#include "base/error.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/agg_key.h"

size_t gw_tensor_row_size(uint32_t tensors_max)
{
    return tensors_max * sizeof(struct gw_row_tensor);
}

void gw_tensor_row_init(struct gw_tensor_row *row, void *memory, uint32_t tensors_max,
                        uint32_t values, uint32_t first_seq)
{
    GW_ASSERT(tensors_max >= 1 && values >= 1 && values <= UINT16_MAX);
    *row = (struct gw_tensor_row){
        .tensors = memory,
        .values = values,
        .end = first_seq,
    };
    gw_index_queue_init(&row->queue, tensors_max);
}

int gw_tensor_row_push(struct gw_tensor_row *row, const struct gw_tensor *tensor,
                       int scale_exponent, uint32_t world)
{
    if (tensor->count == 0 || tensor->bound < 0 || !gw_op_by_switch(tensor->op, tensor->type))
        return GW_ERR_INVALID;
    const struct gw_row_tensor *oldest = gw_tensor_row_first(row);
    uint64_t fragments = (tensor->count - 1) / row->values + 1;
    uint64_t in_work = oldest ? row->end - oldest->first : 0;
    if (fragments > GW_ROW_FRAGMENTS_MAX)
        return GW_ERR_INVALID;
    if (gw_index_queue_is_full(&row->queue) || fragments > GW_ROW_FRAGMENTS_MAX - in_work)
        return GW_ERR_NO_ROOM;
    uint32_t shares = tensor->op == GW_OP_AVERAGE ? world : 1;
    row->tensors[gw_index_queue_push(&row->queue)] = (struct gw_row_tensor){
        .tensor = *tensor,
        .scale = tensor->type == GW_DTYPE_I32 ? gw_scale_integer(1, shares)
                                              : gw_scale_named(scale_exponent, shares),
        .key = gw_agg_key(row->end, tensor->type, tensor->op == GW_OP_AVERAGE),
        .first = row->end,
        .fragments = (uint32_t)fragments,
        .bound = gw_agg_bound_of(tensor->bound),
    };
    row->end += (uint32_t)fragments;
    return GW_OK;
}

void gw_tensor_row_pop(struct gw_tensor_row *row)
{
    GW_ASSERT(row->queue.count);
    gw_index_queue_pop(&row->queue);
}
