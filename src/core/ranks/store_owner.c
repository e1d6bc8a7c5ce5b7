/*
 * The store's owner: requests of other ranks, and the work on values, which is done in parts so
 * that packets do not wait for it. See store.h.
 *
 * Invariant: of a rank whose request is being done no memory is posted for another.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/error.h"
#include "core/ranks/mesh_impl.h"
#include "core/ranks/store_impl.h"

enum {
    PART = 1 << 18, /* elements worked on between packets: well below a millisecond */
};

void gw_store_owner_queue(struct gw_store *store, uint32_t rank)
{
    GW_ASSERT(!gw_index_queue_is_full(&store->tasks));
    store->ranks[gw_index_queue_push(&store->tasks)] = (uint16_t)rank;
}

/* What was said last has arrived, whether or not we have heard that: its memory is free. */
static void let_go_of_reply(struct gw_store *store, struct gw_store_pair *pair)
{
    struct gw_mesh *mesh = store->cfg.mesh;
    if (pair->is_replying && pair->reply_bytes)
        gw_mesh_forget(mesh, &pair->reply, sizeof(pair->reply));
    else if (pair->is_replying)
        gw_mesh_forget(mesh, pair->staged, gw_value_bytes(&pair->task.shape));
    pair->is_replying = false;
    store->replies_waiting -= pair->reply_waits; /* who asks again does not wait for it */
    pair->reply_waits = false;
}

/* Where a part of a value may be missing: what is staged has bits of its fragments and, of a pull,
 * their counts behind the data. */
struct staging {
    uint64_t bits_at, counts_at, bytes;
};

static struct staging staging_of(const struct gw_store *store, const struct gw_store_task *task)
{
    uint64_t bytes = gw_value_bytes(&task->shape);
    if (!task->terms.has_parts)
        return (struct staging){.bytes = bytes};
    uint64_t fragments =
        gw_value_fragments(&task->shape, gw_store_fragment(store, task->shape.type));
    struct staging staging = {.bits_at = (bytes + 7) / 8 * 8};
    staging.counts_at = staging.bits_at + gw_bit_words(fragments) * sizeof(uint64_t);
    staging.bytes = staging.counts_at + (task->is_pull ? fragments * sizeof(uint16_t) : 0);
    return staging;
}

static void drop_staged(struct gw_store *store, struct gw_store_pair *pair)
{
    gw_allocator_give(&store->cfg.allocator, pair->staged);
    pair->staged = NULL;
}

/* The reply waits for room, and for a way, which may have gone since the request. */
static void send_reply(struct gw_store *store, uint32_t rank, gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    struct gw_mesh *mesh = store->cfg.mesh;
    bool is_value = pair->reply_bytes == 0;
    uint32_t tag = is_value ? gw_store_tag(GW_STORE_VALUE, pair->asked_number - 1)
                            : gw_store_tag(GW_STORE_ANSWER, pair->reply_number);
    const struct gw_store_terms *terms = &pair->task.terms;
    struct gw_send send = {
        .bytes = is_value ? gw_value_bytes(&pair->task.shape) : pair->reply_bytes,
        .data = is_value ? pair->staged : (const void *)&pair->reply,
        .tag = tag,
        .class = mesh->cfg.class,
        .transport = mesh->cfg.transport,
    };
    if (is_value && terms->has_parts) {
        send.class = terms->class;
        send.transport = store->cfg.parts_transport;
        send.bound = terms->bound;
        send.notes = pair->task.counts;
    }
    bool waits = !gw_mesh_reaches(mesh, rank, true) ||
                 gw_mesh_send_part(mesh, rank, &send, &pair->reply_flow, now) != GW_OK;
    store->replies_waiting += (uint32_t)waits - (uint32_t)pair->reply_waits;
    pair->reply_waits = waits;
    pair->is_replying = !waits;
    pair->reply_number += !waits && !is_value;
}

/* Says GW_STORE_GO, GW_STORE_DONE with so many bytes, or why not. */
static void reply(struct gw_store *store, uint32_t rank, uint8_t word,
                  const struct gw_value_shape *shape, uint64_t bytes, gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    gw_store_write(&pair->reply,
                   &(struct gw_store_header){.word = word, .key = pair->task.key, .shape = *shape});
    pair->reply_bytes = GW_STORE_HEADER_SIZE + (uint32_t)bytes;
    send_reply(store, rank, now);
}

/* The request is done: the next one may come. */
static void await_next(struct gw_store *store, uint32_t rank)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    pair->asked_number++;
    gw_store_expect(store, rank, gw_store_tag(GW_STORE_REQUEST, pair->asked_number), &pair->asked,
                    GW_STORE_MESSAGE_SIZE);
}

static void refuse(struct gw_store *store, uint32_t rank, uint8_t word,
                   const struct gw_value_shape *found, gw_time now)
{
    drop_staged(store, &store->pairs[rank]);
    await_next(store, rank);
    reply(store, rank, word, found, 0, now);
}

/* Whether the task fits the value: 0, or why not, with the shape that was found. */
static uint8_t look_up(const struct gw_store *store, const struct gw_store_task *task,
                       struct gw_value_shape *found)
{
    const struct gw_value *value = gw_values_find(&store->values, task->key);
    *found = value ? value->shape : task->shape;
    if (!value)
        return GW_REFUSED_UNKNOWN_KEY;
    return found->count == task->shape.count && found->type == task->shape.type
               ? 0
               : GW_REFUSED_OTHER_SHAPE;
}

/* A push is about to be added: counts it. Where a fragment of it is missing its memory is 0, as it
 * was taken, and adds nothing. */
static bool count_push(struct gw_store *store, const struct gw_store_task *task)
{
    return gw_values_count(&store->values, task->key,
                           store->cfg.mtu ? gw_store_fragment(store, task->shape.type) : 1,
                           task->arrived) == GW_OK;
}

/*
 * Does the next part of a task; *done grows by the elements. Returns 0 (there is more), or how it
 * has ended.
 */
static uint8_t work_on(struct gw_store *store, const struct gw_store_task *task,
                       struct gw_value_shape *found, uint64_t *done)
{
    uint8_t why = look_up(store, task, found);
    if (why == GW_REFUSED_UNKNOWN_KEY && !task->is_pull)
        why = gw_values_make(&store->values, task->key, &task->shape) ? GW_REFUSED_NO_MEMORY : 0;
    if (why)
        return why;
    const struct gw_value *value = gw_values_find(&store->values, task->key);
    uint64_t at = store->work_at, left = task->shape.count - at;
    uint32_t count = left < PART ? (uint32_t)left : PART;
    uint64_t offset = at * gw_dtype_size(task->shape.type);
    const unsigned char *data = task->data;
    bool is_sum = !task->is_pull && !gw_dtype_is_float(task->shape.type);
    bool is_check = is_sum && !store->is_checked;
    if (!task->is_pull && !is_check && at == 0 && !count_push(store, task))
        return GW_REFUSED_NO_MEMORY;
    if (is_check && !gw_value_has_room(value, at, data + offset, count))
        return GW_REFUSED_OVERFLOW;
    if (task->is_pull)
        gw_value_read(&store->values, value, at, (unsigned char *)task->out + offset, count);
    else if (!is_check)
        gw_value_add(&store->values, value, at, data + offset, count);
    if (task->counts && count == left)
        gw_value_counts(value, gw_store_fragment(store, task->shape.type), task->counts);
    *done += count;
    store->work_at = count < left ? at + count : 0;
    if (count == left)
        store->is_checked = is_check;
    return count == left && !is_check ? GW_STORE_DONE : 0;
}

/* The first task has ended. */
static void end_task(struct gw_store *store, uint8_t word, const struct gw_value_shape *found,
                     gw_time now)
{
    uint32_t rank = store->ranks[gw_index_queue_pop(&store->tasks)];
    struct gw_store_pair *pair = &store->pairs[rank];
    uint64_t bytes = gw_value_bytes(&pair->task.shape);
    store->work_at = 0;
    store->is_checked = false;
    if (rank == store->cfg.rank) {
        gw_store_calls_done(store, word, found, now);
    } else if (word != GW_STORE_DONE) {
        refuse(store, rank, word, found, now);
    } else if (pair->task.is_pull && pair->staged) {
        await_next(store, rank);
        pair->reply_bytes = 0;
        send_reply(store, rank, now);
    } else {
        drop_staged(store, pair);
        await_next(store, rank);
        reply(store, rank, GW_STORE_DONE, &pair->task.shape, pair->task.is_pull ? bytes : 0, now);
    }
}

void gw_store_owner_advance(struct gw_store *store, gw_time now)
{
    struct gw_value_shape found;
    for (uint32_t rank = 0; store->replies_waiting && rank < store->cfg.world; rank++)
        if (store->pairs[rank].reply_waits)
            send_reply(store, rank, now);
    for (uint64_t done = 0; store->tasks.count && done < PART;) {
        const struct gw_store_task *task = &store->pairs[store->ranks[store->tasks.head]].task;
        uint8_t word = work_on(store, task, &found, &done);
        if (word)
            end_task(store, word, &found, now);
    }
}

/* Makes room for data that does not fit a message. */
static bool stage(struct gw_store *store, struct gw_store_pair *pair)
{
    uint64_t bytes = staging_of(store, &pair->task).bytes;
    pair->staged = bytes <= SIZE_MAX ? gw_allocator_take(&store->cfg.allocator, bytes) : NULL;
    return pair->staged != NULL;
}

/* Bits and counts of what is staged. */
static void stage_parts(const struct gw_store *store, struct gw_store_pair *pair)
{
    struct gw_store_task *task = &pair->task;
    const struct staging staging = staging_of(store, task);
    unsigned char *staged = pair->staged;
    if (task->is_pull)
        task->counts = (uint16_t *)(void *)(staged + staging.counts_at);
    else
        task->arrived = (uint64_t *)(void *)(staged + staging.bits_at);
}

/* Posts memory for the data of a push. */
static void expect_data(struct gw_store *store, uint32_t rank)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    struct gw_store_task *task = &pair->task;
    struct gw_expect expect = {
        .tag = gw_store_tag(GW_STORE_DATA, pair->asked_number),
        .data = pair->staged,
        .bytes = gw_value_bytes(&task->shape),
    };
    if (task->terms.has_parts) {
        task->finish = gw_finish_within(task->terms.bound);
        expect.finish = &task->finish;
        expect.arrived = task->arrived;
        expect.packets_max =
            (uint32_t)gw_value_fragments(&task->shape, gw_store_fragment(store, task->shape.type));
    }
    int code = gw_mesh_expect_part(store->cfg.mesh, rank, &expect);
    GW_ASSERT(code == GW_OK); /* by gw_store_awaits() */
}

/* A sound request. What would be refused later is refused now, before its data travels. */
static void take_request(struct gw_store *store, uint32_t rank, bool is_small, gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    struct gw_store_task *task = &pair->task;
    struct gw_value_shape found;
    uint8_t why = look_up(store, task, &found);
    bool is_refused = task->is_pull ? why != 0 : why == GW_REFUSED_OTHER_SHAPE;
    if (!is_refused && !is_small && !stage(store, pair)) {
        is_refused = true;
        why = GW_REFUSED_NO_MEMORY;
    }
    if (is_refused) {
        refuse(store, rank, why, &found, now);
        return;
    }
    task->data = is_small ? pair->asked.data : pair->staged;
    task->out = is_small ? pair->reply.data : pair->staged;
    if (task->terms.has_parts)
        stage_parts(store, pair);
    if (is_small || task->is_pull) {
        gw_store_owner_queue(store, rank);
        return;
    }
    pair->is_receiving = true;
    expect_data(store, rank);
    reply(store, rank, GW_STORE_GO, &task->shape, 0, now);
}

/* The data of a push is there. */
static void take_data(struct gw_store *store, uint32_t rank, const struct gw_event *event,
                      gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    pair->is_receiving = false;
    if (gw_store_fits(store, gw_value_bytes(&pair->task.shape), pair->task.terms.has_parts, event))
        gw_store_owner_queue(store, rank);
    else
        gw_store_blame(store, rank, now);
}

/* Whether a part of such a value may be missing, as far as it is for this end. */
static bool can_have_parts(const struct gw_store *store, const struct gw_value_shape *shape)
{
    const struct gw_store_cfg *cfg = &store->cfg;
    return cfg->parts_transport && cfg->mtu % gw_dtype_size(shape->type) == 0 &&
           gw_value_bytes(shape) <= cfg->largest;
}

/* A request, or what looks like one, is there. */
static void read_request(struct gw_store *store, uint32_t rank, const struct gw_event *event,
                         gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    struct gw_store_task *task = &pair->task;
    struct gw_store_header header;
    drop_staged(store, pair); /* a value whose arrival nobody has told us of */
    bool is_sound = gw_store_read(&pair->asked, event->bytes, &header) &&
                    (header.word == GW_STORE_PULL || header.word == GW_STORE_PUSH) &&
                    (!header.terms.has_parts || can_have_parts(store, &header.shape));
    if (!is_sound) {
        gw_store_blame(store, rank, now);
        return;
    }
    uint64_t bytes = gw_value_bytes(&header.shape);
    bool is_small = bytes <= GW_STORE_DATA_MAX && !header.terms.has_parts;
    *task = (struct gw_store_task){.key = header.key,
                                   .shape = header.shape,
                                   .is_pull = header.word == GW_STORE_PULL,
                                   .terms = header.terms};
    if (event->bytes == GW_STORE_HEADER_SIZE + (!task->is_pull && is_small ? bytes : 0))
        take_request(store, rank, is_small, now);
    else
        gw_store_blame(store, rank, now);
}

void gw_store_owner_event(struct gw_store *store, uint32_t rank, const struct gw_event *event,
                          gw_time now)
{
    struct gw_store_pair *pair = &store->pairs[rank];
    if (event->kind == GW_EVENT_SENT) {
        if (!pair->is_replying || event->flow != pair->reply_flow)
            return;
        pair->is_replying = false;
        if (pair->reply_bytes == 0)
            drop_staged(store, pair);
        return;
    }
    enum gw_store_kind kind = pair->is_receiving ? GW_STORE_DATA : GW_STORE_REQUEST;
    if (event->tag != gw_store_tag(kind, pair->asked_number)) {
        gw_store_blame(store, rank, now);
        return;
    }
    let_go_of_reply(store, pair);
    if (pair->is_receiving)
        take_data(store, rank, event, now);
    else
        read_request(store, rank, event, now);
}

void gw_store_owner_drop(struct gw_store *store)
{
    for (uint32_t rank = 0; rank < store->cfg.world; rank++) {
        struct gw_store_pair *pair = &store->pairs[rank];
        if (pair->staged)
            gw_mesh_forget(store->cfg.mesh, pair->staged, gw_value_bytes(&pair->task.shape));
        drop_staged(store, pair);
    }
    gw_index_queue_clear(&store->tasks);
    store->replies_waiting = 0;
    store->work_at = 0;
    store->is_checked = false;
}
