/*
 * Runs a schedule; see scheduler.h.
 *
 * A ready tensor is first held (for the backward pass to end, for the next cycle of fusion), then
 * in a heap in the order of the schedule, until its last slice is handed out. A schedule by layer
 * has the number of the tensor as key, one in order of time the time; the heap settles ties by the
 * number, which is the rule for tensors of the same instant. Handing out a piece takes O(log n) of
 * n tensors, however many slices there are.
 */
#include "workload/schedule/scheduler.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "topo/memory.h"

struct tensor {
    uint64_t left; /* bytes that are not done */
    gw_time ready; /* since when */
    uint32_t first_piece;
    uint32_t slice_count;
    uint32_t taken; /* slices handed out, from the first on */
    bool is_ready;
};

struct gw_scheduler {
    const struct gw_schedule_ops *ops;
    const struct gw_plan *plan;
    uint64_t partition;  /* 0: none */
    uint64_t buffer_max; /* bytes; 0: no fusion */
    uint64_t credit;
    gw_time cycle; /* 0: none */
    struct tensor *tensors;
    uint32_t *layer_left; /* tensors of each layer that are not done */
    uint32_t *held;       /* ready tensors that may not leave yet */
    struct gw_heap queue; /* ready tensors that may */
    void *queue_memory;
    gw_time began;
    gw_time release;    /* when the held ones may leave */
    uint64_t under_way; /* bytes handed out and not done */
    uint32_t held_count;
    uint32_t ready_count;
    uint32_t left_count; /* tensors that are not done */
    uint32_t piece_count;
    bool credit_when_sent;
    bool is_backward_over;
};

static uint64_t piece_bytes(const struct gw_scheduler *s, uint32_t tensor, uint32_t slice)
{
    uint64_t bytes = s->plan->tensors[tensor].bytes;
    if (s->tensors[tensor].slice_count == 1)
        return bytes;
    uint64_t first = slice * s->partition;
    return bytes - first < s->partition ? bytes - first : s->partition;
}

struct gw_scheduler *gw_scheduler_open(const struct gw_scheduler_cfg *cfg)
{
    const struct gw_plan *plan = cfg->plan;
    uint64_t credit = cfg->ops->credit(cfg->cfg);
    struct gw_scheduler *s = gw_memory_zeroed(1, sizeof(*s));
    *s = (struct gw_scheduler){
        .ops = cfg->ops,
        .plan = plan,
        .partition = cfg->ops->partition(cfg->cfg),
        .buffer_max = cfg->fusion,
        .credit_when_sent = cfg->credit_when_sent,
        .credit = credit ? credit : 1,
        .cycle = cfg->fusion ? cfg->cycle : 0,
        .tensors = gw_memory_zeroed(plan->tensor_count, sizeof(struct tensor)),
        .layer_left = gw_memory_zeroed(plan->layer_count, sizeof(uint32_t)),
        .held = gw_memory_zeroed(plan->tensor_count, sizeof(uint32_t)),
        .queue_memory = gw_memory_zeroed(1, gw_heap_size(plan->tensor_count)),
        .release = GW_TIME_NEVER,
    };
    if (s->partition && s->buffer_max > s->partition)
        s->buffer_max = s->partition;
    gw_heap_init(&s->queue, s->queue_memory, plan->tensor_count);
    uint64_t pieces = 0;
    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        uint64_t bytes = plan->tensors[t].bytes;
        uint64_t slices = s->partition ? (bytes + s->partition - 1) / s->partition : 1;
        GW_ASSERT(bytes > 0 && pieces + slices <= UINT32_MAX);
        s->tensors[t].first_piece = (uint32_t)pieces;
        s->tensors[t].slice_count = (uint32_t)slices;
        pieces += slices;
    }
    s->piece_count = (uint32_t)pieces;
    return s;
}

void gw_scheduler_close(struct gw_scheduler *s)
{
    if (!s)
        return;
    free(s->queue_memory);
    free(s->held);
    free(s->layer_left);
    free(s->tensors);
    free(s);
}

uint32_t gw_scheduler_pieces(const struct gw_scheduler *s)
{
    return s->piece_count;
}

void gw_scheduler_begin(struct gw_scheduler *s, gw_time now)
{
    GW_ASSERT(s->left_count == 0);
    /* Who followed another worker's order was never asked for what was ready. */
    while (s->queue.count)
        gw_heap_set(&s->queue, gw_heap_first(&s->queue), GW_TIME_NEVER);
    s->began = now;
    s->release = GW_TIME_NEVER;
    s->held_count = 0;
    s->ready_count = 0;
    s->left_count = s->plan->tensor_count;
    s->is_backward_over = false;
    for (uint32_t l = 0; l < s->plan->layer_count; l++)
        s->layer_left[l] = s->plan->layers[l].tensor_count;
    for (uint32_t t = 0; t < s->plan->tensor_count; t++) {
        s->tensors[t].left = s->plan->tensors[t].bytes;
        s->tensors[t].taken = 0;
        s->tensors[t].is_ready = false;
    }
}

/* The next multiple of the cycle, now included. */
static gw_time next_cycle(const struct gw_scheduler *s, gw_time now)
{
    if (s->cycle == 0)
        return now;
    gw_time into = (now - s->began) % s->cycle;
    return into ? gw_time_add(now, s->cycle - into) : now;
}

/* Lets the held tensors leave if it is time. */
static void release(struct gw_scheduler *s, gw_time now)
{
    if (s->release == GW_TIME_NEVER || gw_time_before(now, s->release))
        return;
    for (uint32_t i = 0; i < s->held_count; i++) {
        uint32_t t = s->held[i];
        gw_heap_set(&s->queue, t, s->ops->by_layer ? 0 : s->tensors[t].ready - s->began);
    }
    s->held_count = 0;
    s->release = GW_TIME_NEVER;
}

void gw_scheduler_ready(struct gw_scheduler *s, uint32_t tensor, gw_time now)
{
    GW_ASSERT(tensor < s->plan->tensor_count && !s->tensors[tensor].is_ready);
    release(s, now);
    s->tensors[tensor].is_ready = true;
    s->tensors[tensor].ready = now;
    s->ready_count++;
    s->held[s->held_count++] = tensor;
    if (!s->ops->after_backward)
        s->release = next_cycle(s, now);
}

void gw_scheduler_backward_over(struct gw_scheduler *s, gw_time now)
{
    GW_ASSERT(s->ready_count == s->plan->tensor_count);
    s->is_backward_over = true;
    if (s->ops->after_backward && s->held_count)
        s->release = next_cycle(s, now);
}

/* Whether a tensor may leave now, whole. */
static bool may_fuse(const struct gw_scheduler *s, uint32_t tensor)
{
    return gw_heap_deadline(&s->queue, tensor) != GW_TIME_NEVER &&
           s->tensors[tensor].slice_count == 1;
}

/* Fuses neighbours of a tensor that leaves whole, those behind it first. */
static void fuse(const struct gw_scheduler *s, struct gw_piece *piece)
{
    const struct gw_plan_tensor *tensors = s->plan->tensors;
    uint32_t first = piece->first_tensor, end = first + 1;
    uint64_t bytes = piece->bytes;
    while (end < s->plan->tensor_count && may_fuse(s, end) &&
           bytes + tensors[end].bytes <= s->buffer_max)
        bytes += tensors[end++].bytes;
    while (first > 0 && may_fuse(s, first - 1) && bytes + tensors[first - 1].bytes <= s->buffer_max)
        bytes += tensors[--first].bytes;
    piece->first_tensor = first;
    piece->tensor_count = end - first;
    piece->bytes = bytes;
}

bool gw_scheduler_next(struct gw_scheduler *s, struct gw_piece *piece, gw_time now)
{
    release(s, now);
    if (s->queue.count == 0 || s->under_way >= s->credit)
        return false;
    uint32_t head = gw_heap_first(&s->queue);
    uint32_t slice = s->tensors[head].taken;
    *piece = (struct gw_piece){
        .first_tensor = head,
        .tensor_count = 1,
        .first = slice * s->partition,
        .bytes = piece_bytes(s, head, slice),
    };
    if (s->buffer_max && s->tensors[head].slice_count == 1)
        fuse(s, piece);
    piece->id = s->tensors[piece->first_tensor].first_piece + slice;
    for (uint32_t i = 0; i < piece->tensor_count; i++) {
        struct tensor *tensor = &s->tensors[piece->first_tensor + i];
        if (++tensor->taken == tensor->slice_count)
            gw_heap_set(&s->queue, piece->first_tensor + i, GW_TIME_NEVER);
    }
    s->under_way += piece->bytes;
    return true;
}

gw_time gw_scheduler_deadline(const struct gw_scheduler *s, gw_time now)
{
    if (s->release == GW_TIME_NEVER || s->under_way >= s->credit)
        return GW_TIME_NEVER;
    return gw_time_before(s->release, now) ? now : s->release;
}

bool gw_scheduler_has(const struct gw_scheduler *s, const struct gw_piece *piece)
{
    GW_ASSERT(piece->first_tensor + piece->tensor_count <= s->plan->tensor_count);
    if (s->ops->after_backward && !s->is_backward_over)
        return false;
    for (uint32_t i = 0; i < piece->tensor_count; i++)
        if (!s->tensors[piece->first_tensor + i].is_ready)
            return false;
    return true;
}

/* Counts bytes of a tensor as done; returns true when they were the last of its layer. */
static bool tensor_done(struct gw_scheduler *s, uint32_t tensor, uint64_t bytes)
{
    struct tensor *done = &s->tensors[tensor];
    GW_ASSERT(done->is_ready && done->left >= bytes);
    done->left -= bytes;
    if (done->left)
        return false;
    s->left_count--;
    return --s->layer_left[s->plan->tensors[tensor].layer] == 0;
}

/* Gives the credit of a piece back, if this worker chose it. */
static void give_credit(struct gw_scheduler *s, const struct gw_piece *piece)
{
    const struct tensor *first = &s->tensors[piece->first_tensor];
    if (piece->id - first->first_piece < first->taken)
        s->under_way -= piece->bytes;
}

void gw_scheduler_sent(struct gw_scheduler *s, const struct gw_piece *piece)
{
    GW_ASSERT(s->credit_when_sent);
    give_credit(s, piece);
}

bool gw_scheduler_done(struct gw_scheduler *s, const struct gw_piece *piece)
{
    GW_ASSERT(piece->tensor_count > 0 &&
              piece->first_tensor + piece->tensor_count <= s->plan->tensor_count);
    bool freed = false;
    if (piece->tensor_count == 1)
        freed = tensor_done(s, piece->first_tensor, piece->bytes);
    for (uint32_t i = 0; i < piece->tensor_count && piece->tensor_count > 1; i++) {
        uint32_t tensor = piece->first_tensor + i;
        freed |= tensor_done(s, tensor, s->plan->tensors[tensor].bytes);
    }
    if (!s->credit_when_sent)
        give_credit(s, piece);
    return s->ops->forward_waits_all ? s->left_count == 0 : freed;
}

bool gw_scheduler_may_compute(const struct gw_scheduler *s, uint32_t layer)
{
    return s->ops->forward_waits_all ? s->left_count == 0 : s->layer_left[layer] == 0;
}

bool gw_scheduler_is_over(const struct gw_scheduler *s)
{
    return s->left_count == 0;
}
