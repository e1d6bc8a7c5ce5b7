/* Who was left out of which call; see left_out.h. */
#include "core/aggregation/left_out.h"

#include "core/aggregation/agg_bound.h"

size_t gw_left_out_size(uint32_t world)
{
    return (size_t)GW_LEFT_OUT_CALLS * world * sizeof(uint32_t);
}

void gw_left_out_init(struct gw_left_out *books, void *memory, uint32_t world)
{
    *books = (struct gw_left_out){.counts = memory, .world = world};
}

void gw_left_out_clear(struct gw_left_out *books)
{
    for (uint32_t i = 0; i < GW_LEFT_OUT_CALLS; i++)
        books->calls[i].is_open = false;
}

void gw_left_out_close(struct gw_left_out *books, uint32_t seq, uint32_t key)
{
    for (uint32_t i = 0; i < GW_LEFT_OUT_CALLS; i++) {
        struct gw_left_out_call *call = &books->calls[i];
        /* A call's fragments have consecutive numbers. */
        if (call->is_open && call->key != key && (int32_t)(seq - call->newest) > 0)
            call->is_open = false;
    }
}

static uint32_t *counts_of(const struct gw_left_out *books, const struct gw_left_out_call *call)
{
    return books->counts + (size_t)(call - books->calls) * books->world;
}

/* The page of a call, or a free one, or NULL. */
static struct gw_left_out_call *page_of(struct gw_left_out *books, uint32_t key)
{
    struct gw_left_out_call *free = NULL;
    for (uint32_t i = 0; i < GW_LEFT_OUT_CALLS; i++) {
        struct gw_left_out_call *call = &books->calls[i];
        if (call->is_open && call->key == key)
            return call;
        if (!call->is_open)
            free = call;
    }
    return free;
}

/* The strictest bound that was said of the item's call. */
static uint8_t bound_of(const struct gw_left_out_call *call, const struct gw_left_out_item *item)
{
    return call->is_open && call->bound < item->bound ? call->bound : item->bound;
}

bool gw_left_out_allows(struct gw_left_out *books, const struct gw_left_out_item *item)
{
    const struct gw_left_out_call *call = page_of(books, item->key);
    if (!call)
        return false;
    const uint32_t *counts = counts_of(books, call);
    uint32_t allowed = gw_agg_bound_allows(bound_of(call, item), item->known);
    for (uint32_t rank = 0; (rank = gw_rank_set_next(item->missing, rank)) < books->world; rank++)
        if ((call->is_open ? counts[rank] : 0) >= allowed)
            return false;
    return true;
}

bool gw_left_out_add(struct gw_left_out *books, const struct gw_left_out_item *item)
{
    if (!gw_left_out_allows(books, item))
        return false;
    struct gw_left_out_call *call = page_of(books, item->key);
    uint32_t *counts = counts_of(books, call);
    call->bound = bound_of(call, item);
    if (!call->is_open) {
        *call = (struct gw_left_out_call){
            .key = item->key, .newest = item->seq, .bound = item->bound, .is_open = true};
        memset(counts, 0, books->world * sizeof(*counts));
    }
    for (uint32_t rank = 0; (rank = gw_rank_set_next(item->missing, rank)) < books->world; rank++)
        counts[rank]++;
    if ((int32_t)(item->seq - call->newest) > 0)
        call->newest = item->seq;
    return true;
}
