/*
 * Messages between ranks; see messages.h.
 *
 * Memory for what is received is posted as soon as the sender's address is known: it is the sender
 * who needs a way. Who sends late is not to blame, as long as it sends something in time: a receive
 * is overdue when memory has been posted for the time of a stall and nothing has begun to fill it.
 *
 * Without payload there is no memory to post. What has come before its receive is kept; whether a
 * message has begun to come is not known, so nothing is overdue while anything arrives here.
 */
#include "core/ranks/messages.h"

#include "base/arena.h"
#include "base/bits.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/index_queue.h"
#include "base/stall.h"
#include "core/ranks/mesh_impl.h"

enum {
    EARLY_PER_MESSAGE = 16, /* kept without payload, for each that may be under way here */
};

enum move_state {
    MOVE_FREE,
    MOVE_WAITS, /* a way and room move it on */
    MOVE_RUNS,  /* the endpoint's event moves it on */
    MOVE_DONE,  /* polling moves it on */
};

struct move {
    struct gw_message message;
    uint64_t bytes;          /* that were moved */
    struct gw_finish finish; /* when it is enough, of one with parts to receive */
    uint32_t missing;
    gw_time since;  /* it runs */
    uint32_t flow;  /* that sends it */
    uint8_t state;  /* enum move_state */
    bool has_begun; /* to be received */
};

/* A message without payload that nobody has asked for yet. */
struct early {
    uint64_t bytes;
    uint32_t rank;
    uint32_t tag;
};

struct gw_messages {
    struct gw_mesh *mesh;
    const struct gw_transport *parts_transport;
    uint32_t fragment; /* bytes */
    struct move *moves;
    struct early *early;
    uint16_t *done; /* of moves */
    struct gw_index_queue done_queue;
    uint32_t limit;
    uint32_t waiting, running; /* of moves */
    uint32_t early_count;
    gw_time stall;
    uint64_t arrivals; /* packets at the endpoint, when last looked at */
    gw_time quiet_since;
};

/* Carves the tables out of the arena. The same code measures and builds. */
static void messages_carve(struct gw_messages *messages, uint32_t limit, struct gw_arena *arena)
{
    messages->moves = gw_arena_take(arena, limit * sizeof(*messages->moves));
    messages->early =
        gw_arena_take(arena, (size_t)limit * EARLY_PER_MESSAGE * sizeof(struct early));
    messages->done = gw_arena_take(arena, limit * sizeof(*messages->done));
}

size_t gw_messages_size(uint32_t limit)
{
    struct gw_messages messages;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(messages));
    messages_carve(&messages, limit, &arena);
    return arena.used;
}

struct gw_messages *gw_messages_init(void *memory, uint32_t limit, struct gw_mesh *mesh,
                                     gw_time stall)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0 && limit <= UINT16_MAX);
    struct gw_arena arena = {.base = memory};
    struct gw_messages *messages = gw_arena_take(&arena, sizeof(*messages));
    *messages = (struct gw_messages){.mesh = mesh, .limit = limit, .stall = stall};
    messages_carve(messages, limit, &arena);
    for (uint32_t i = 0; i < limit; i++)
        messages->moves[i].state = MOVE_FREE;
    gw_index_queue_init(&messages->done_queue, limit);
    return messages;
}

void gw_messages_set_parts(struct gw_messages *messages, const struct gw_transport *transport,
                           uint32_t fragment)
{
    messages->parts_transport = transport;
    messages->fragment = fragment;
}

static uint32_t tag_of(const struct gw_message *message)
{
    return GW_MESH_TAG_MESSAGE | message->tag;
}

static void finish(struct gw_messages *messages, struct move *move, uint64_t bytes)
{
    move->state = MOVE_DONE;
    move->bytes = bytes;
    messages->done[gw_index_queue_push(&messages->done_queue)] = (uint16_t)(move - messages->moves);
}

/* Without payload: takes the message if it has come already. */
static bool take_early(struct gw_messages *messages, struct move *move)
{
    const struct gw_message *message = &move->message;
    for (uint32_t i = 0; i < messages->early_count; i++) {
        const struct early *early = &messages->early[i];
        if (early->rank != message->rank || early->tag != tag_of(message))
            continue;
        finish(messages, move, early->bytes);
        messages->early[i] = messages->early[--messages->early_count];
        return true;
    }
    return false;
}

static uint32_t fragments_of(const struct gw_messages *messages, uint64_t bytes)
{
    return (uint32_t)(bytes / messages->fragment + (bytes % messages->fragment != 0));
}

static int expect_part(const struct gw_messages *messages, struct move *move)
{
    const struct gw_message *message = &move->message;
    move->finish = gw_finish_within_both(message->parts->bound); /* else its sender waits for all */
    return gw_mesh_expect_part(messages->mesh, message->rank,
                               &(struct gw_expect){
                                   .tag = tag_of(message),
                                   .data = message->data,
                                   .bytes = message->bytes,
                                   .finish = &move->finish,
                                   .arrived = message->parts->arrived,
                                   .packets_max = fragments_of(messages, message->bytes),
                               });
}

static int send_part(const struct gw_messages *messages, struct move *move, gw_time now)
{
    const struct gw_message *message = &move->message;
    const struct gw_parts *parts = message->parts;
    return gw_mesh_send_part(messages->mesh, message->rank,
                             &(struct gw_send){
                                 .bytes = message->bytes,
                                 .data = message->data,
                                 .tag = tag_of(message),
                                 .class = parts->class,
                                 .bound = parts->bound,
                                 .important = parts->important,
                                 .important_first = parts->important_first,
                                 .transport = messages->parts_transport,
                             },
                             &move->flow, now);
}

/* The counts of a message that has been received: of what is there one, its sender. */
static void count_parts(const struct gw_messages *messages, const struct move *move)
{
    const struct gw_parts *parts = move->message.parts;
    if (!parts || !parts->counts || !move->message.is_receive)
        return;
    uint32_t fragments = fragments_of(messages, move->message.bytes);
    for (uint32_t i = 0; i < fragments; i++)
        parts->counts[i] = gw_bit_is_set(parts->arrived, i);
}

/* Starts a message that waits, if there is a way and room. */
static void start(struct gw_messages *messages, struct move *move, gw_time now)
{
    struct gw_mesh *mesh = messages->mesh;
    const struct gw_message *message = &move->message;
    int code = GW_OK;
    if (message->is_receive && mesh->cfg.is_bare) {
        if (take_early(messages, move)) {
            messages->waiting--;
            return;
        }
    } else if (message->parts) {
        code = message->is_receive ? expect_part(messages, move) : send_part(messages, move, now);
    } else if (message->is_receive) {
        code = gw_mesh_expect(mesh, message->rank, tag_of(message), message->data, message->bytes);
    } else {
        code = gw_mesh_send(mesh, message->rank, tag_of(message), message->data, message->bytes,
                            &move->flow, now);
    }
    if (code)
        return;
    messages->waiting--;
    messages->running++;
    move->state = MOVE_RUNS;
    move->since = now;
    move->has_begun = false;
}

/* Whether a receive waits for the same message. */
static bool is_awaited(const struct gw_messages *messages, const struct gw_message *message)
{
    for (uint32_t i = 0; messages->waiting + messages->running && i < messages->limit; i++) {
        const struct move *move = &messages->moves[i];
        bool is_under_way = move->state == MOVE_WAITS || move->state == MOVE_RUNS;
        if (is_under_way && move->message.is_receive && move->message.rank == message->rank &&
            move->message.tag == message->tag)
            return true;
    }
    return false;
}

int gw_messages_start(struct gw_messages *messages, const struct gw_message *message, gw_time now)
{
    uint32_t i = 0;
    if (message->is_receive && is_awaited(messages, message))
        return GW_ERR_INVALID;
    while (i < messages->limit && messages->moves[i].state != MOVE_FREE)
        i++;
    if (i == messages->limit)
        return GW_ERR_NO_ROOM;
    messages->moves[i] = (struct move){.message = *message, .state = MOVE_WAITS};
    messages->waiting++;
    gw_messages_advance(messages, now);
    return GW_OK;
}

void gw_messages_advance(struct gw_messages *messages, gw_time now)
{
    if (!messages->mesh->has_met || messages->mesh->state == GW_MESH_OVER)
        return;
    for (uint32_t i = 0; messages->waiting && i < messages->limit; i++)
        if (messages->moves[i].state == MOVE_WAITS)
            start(messages, &messages->moves[i], now);
}

/* The message under way that an event is about, or NULL. */
static struct move *find(const struct gw_messages *messages, uint32_t rank,
                         const struct gw_event *event)
{
    bool is_receive = event->kind == GW_EVENT_RECEIVED;
    for (uint32_t i = 0; messages->running && i < messages->limit; i++) {
        struct move *move = &messages->moves[i];
        const struct gw_message *message = &move->message;
        if (move->state == MOVE_RUNS && message->is_receive == is_receive &&
            message->rank == rank && tag_of(message) == event->tag &&
            (is_receive || move->flow == event->flow))
            return move;
    }
    return NULL;
}

/* Keeps a message without payload that nobody has asked for. */
static void keep(struct gw_messages *messages, uint32_t rank, const struct gw_event *event,
                 gw_time now)
{
    if (messages->early_count == messages->limit * EARLY_PER_MESSAGE) {
        gw_mesh_fail(messages->mesh, GW_JOB_LIMIT, rank, now);
        return;
    }
    messages->early[messages->early_count++] =
        (struct early){.bytes = event->bytes, .rank = rank, .tag = event->tag};
}

bool gw_messages_event(struct gw_messages *messages, const struct gw_event *event, gw_time now)
{
    struct gw_mesh *mesh = messages->mesh;
    uint32_t rank = gw_mesh_rank_of(mesh, event->peer);
    bool is_message = event->tag - GW_MESH_TAG_MESSAGE <= GW_MESH_MESSAGE_TAG_MAX;
    if (!is_message || rank == mesh->cfg.world || event->kind > GW_EVENT_RECEIVED)
        return false;
    mesh->has_talked = true;
    struct move *move = find(messages, rank, event);
    bool is_early = !move && mesh->cfg.is_bare && event->kind == GW_EVENT_RECEIVED;
    if (is_early) {
        keep(messages, rank, event, now);
    } else if (move && event->bytes > move->message.bytes) {
        gw_mesh_fail(mesh, GW_JOB_BROKEN, rank, now); /* without payload: nothing else sees it */
    } else if (move) {
        messages->running--;
        move->missing = event->missing;
        count_parts(messages, move);
        finish(messages, move, event->bytes);
    }
    return move || is_early;
}

bool gw_messages_poll(struct gw_messages *messages, struct gw_message_done *done)
{
    if (messages->done_queue.count == 0)
        return false;
    struct move *move = &messages->moves[messages->done[gw_index_queue_pop(&messages->done_queue)]];
    *done = (struct gw_message_done){
        .call = move->message.call, .bytes = move->bytes, .missing = move->missing};
    move->state = MOVE_FREE;
    return true;
}

/* Whether a receive waits that has not begun, as far as is known. */
static bool awaits(const struct move *move)
{
    return move->state == MOVE_RUNS && move->message.is_receive && !move->has_begun;
}

/* Since when nothing has come for it, as far as is known. */
static gw_time since(const struct gw_messages *messages, const struct move *move)
{
    bool is_later = messages->mesh->cfg.is_bare && messages->arrivals &&
                    gw_time_before(move->since, messages->quiet_since);
    return is_later ? messages->quiet_since : move->since;
}

uint32_t gw_messages_overdue(struct gw_messages *messages, gw_time now)
{
    const struct gw_mesh *mesh = messages->mesh;
    uint64_t arrivals = gw_endpoint_stats(mesh->cfg.endpoint)->progress;
    if (arrivals != messages->arrivals)
        messages->quiet_since = now;
    messages->arrivals = arrivals;
    for (uint32_t i = 0; messages->running && i < messages->limit; i++) {
        struct move *move = &messages->moves[i];
        const struct gw_message *message = &move->message;
        if (!awaits(move) || !gw_stall_is_over(since(messages, move), messages->stall, now))
            continue;
        if (mesh->cfg.is_bare ||
            gw_endpoint_expects(mesh->cfg.endpoint, mesh->addresses[message->rank],
                                tag_of(message)))
            return message->rank;
        move->has_begun = true;
    }
    return mesh->cfg.world;
}

gw_time gw_messages_deadline(const struct gw_messages *messages)
{
    gw_time next = GW_TIME_NEVER;
    for (uint32_t i = 0; messages->running && i < messages->limit; i++) {
        const struct move *move = &messages->moves[i];
        gw_time at =
            awaits(move) ? gw_stall_at(since(messages, move), messages->stall) : GW_TIME_NEVER;
        if (gw_deadline_before(at, next))
            next = at;
    }
    return next;
}

uint32_t gw_messages_awaited(const struct gw_messages *messages)
{
    for (uint32_t i = 0; messages->waiting + messages->running && i < messages->limit; i++)
        if (messages->moves[i].state == MOVE_WAITS || messages->moves[i].state == MOVE_RUNS)
            return messages->moves[i].message.rank;
    return messages->mesh->cfg.world;
}

void gw_messages_drop(struct gw_messages *messages)
{
    for (uint32_t i = 0; i < messages->limit; i++) {
        struct move *move = &messages->moves[i];
        if (move->state == MOVE_RUNS && move->message.data)
            gw_mesh_forget(messages->mesh, move->message.data, move->message.bytes);
        move->state = MOVE_FREE;
    }
    gw_index_queue_clear(&messages->done_queue);
    messages->waiting = messages->running = messages->early_count = 0;
}
