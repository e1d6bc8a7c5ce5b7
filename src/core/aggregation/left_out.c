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

uint32_t gw_left_out_most(const struct gw_left_out *books, uint32_t key,
                          const struct gw_rank_set *set)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < GW_LEFT_OUT_CALLS; i++) {
        const struct gw_left_out_call *call = &books->calls[i];
        const uint32_t *counts = counts_of(books, call);
        if (!call->is_open || call->key != key)
            continue;
        for (uint32_t rank = 0; (rank = gw_rank_set_next(set, rank)) < books->world; rank++)
            most = counts[rank] > most ? counts[rank] : most;
    }
    return most;
}

bool gw_left_out_add(struct gw_left_out *books, const struct gw_left_out_item *item)
{
    struct gw_left_out_call *call = page_of(books, item->key);
    if (!call)
        return false;
    if (call->is_open && item->bound < call->bound)
        call->bound = item->bound;
    uint32_t allowed = gw_agg_bound_allows(call->is_open ? call->bound : item->bound, item->known);
    if (gw_left_out_most(books, item->key, item->missing) >= allowed)
        return false;
    uint32_t *counts = counts_of(books, call);
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
