/* The store: its memory and messages. Both ends are in files of their own; see store.h. */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "core/ranks/mesh_impl.h"
#include "core/ranks/store_impl.h"
#include "wire/octets.h"

enum {
    REPLIES_MAX = 64, /* sent at the same time; others wait */

    AT_WORD = 0,
    AT_TYPE = 1,
    AT_PARTS = 2,
    AT_CLASS = 3,
    AT_BOUND = 4,
    AT_ZERO = 6,
    AT_KEY = 8,
    AT_COUNT = 16,
};

_Static_assert(sizeof(struct gw_store_message) == GW_STORE_MESSAGE_SIZE,
               "the message has no holes");

uint32_t gw_store_flows(uint32_t world, uint32_t limit)
{
    return 2 * limit + (world < REPLIES_MAX ? world : REPLIES_MAX); /* requests, data; replies */
}

uint32_t gw_store_awaits(uint32_t world, uint32_t limit)
{
    return limit + 3 * world; /* values; an answer, a request and data of each */
}

/* Carves the tables out of the arena. The same code measures and builds. */
static void store_carve(struct gw_store *store, uint32_t world, uint32_t limit,
                        struct gw_arena *arena)
{
    store->pairs = gw_arena_take(arena, world * sizeof(*store->pairs));
    store->calls = gw_arena_take(arena, limit * sizeof(*store->calls));
    store->ranks = gw_arena_take(arena, world * sizeof(*store->ranks));
    store->ended = gw_arena_take(arena, limit * sizeof(*store->ended));
}

size_t gw_store_size(uint32_t world, uint32_t limit)
{
    struct gw_store store;
    struct gw_arena arena = {.base = NULL};
    gw_arena_take(&arena, sizeof(store));
    store_carve(&store, world, limit, &arena);
    return arena.used;
}

struct gw_store *gw_store_init(void *memory, const struct gw_store_cfg *cfg)
{
    GW_ASSERT((uintptr_t)memory % GW_CACHE_LINE == 0);
    struct gw_arena arena = {.base = memory};
    struct gw_store *store = gw_arena_take(&arena, sizeof(*store));
    *store = (struct gw_store){.cfg = *cfg};
    store_carve(store, cfg->world, cfg->limit, &arena);
    memset(store->pairs, 0, cfg->world * sizeof(*store->pairs));
    memset(store->calls, 0, cfg->limit * sizeof(*store->calls));
    gw_index_queue_init(&store->tasks, cfg->world);
    gw_index_queue_init(&store->ended_queue, cfg->limit);
    gw_values_init(&store->values, cfg->kernels, &cfg->allocator);
    return store;
}

void gw_store_fini(struct gw_store *store)
{
    gw_store_drop(store);
    gw_values_fini(&store->values);
}

uint32_t gw_store_tag(enum gw_store_kind kind, uint32_t number)
{
    return GW_MESH_TAG_STORE | (uint32_t)kind << GW_STORE_TAG_KIND_SHIFT |
           (number & GW_STORE_TAG_NUMBER);
}

void gw_store_write(struct gw_store_message *message, const struct gw_store_header *header)
{
    memset(message->header, 0, sizeof(message->header));
    message->header[AT_WORD] = header->word;
    message->header[AT_TYPE] = (uint8_t)header->shape.type;
    message->header[AT_PARTS] = header->terms.has_parts;
    message->header[AT_CLASS] = header->terms.class;
    gw_octets_put(message->header + AT_BOUND, (uint64_t)header->terms.bound, 2);
    gw_octets_put(message->header + AT_KEY, header->key, 8);
    gw_octets_put(message->header + AT_COUNT, header->shape.count, 8);
}

bool gw_store_read(const struct gw_store_message *message, uint64_t bytes,
                   struct gw_store_header *header)
{
    const uint8_t *from = message->header;
    if (bytes < GW_STORE_HEADER_SIZE || bytes > GW_STORE_MESSAGE_SIZE ||
        from[AT_TYPE] >= GW_DTYPES || from[AT_PARTS] > 1 || from[AT_CLASS] > GW_CLASS_DATA_MAX ||
        gw_octets_get(from + AT_ZERO, 2) != 0)
        return false;
    if (!from[AT_PARTS] && gw_octets_get(from + AT_CLASS, 3) != 0)
        return false;
    *header = (struct gw_store_header){
        .word = from[AT_WORD],
        .key = gw_octets_get(from + AT_KEY, 8),
        .shape = {.count = gw_octets_get(from + AT_COUNT, 8), .type = (enum gw_dtype)from[AT_TYPE]},
        .terms = {.has_parts = from[AT_PARTS],
                  .class = from[AT_CLASS],
                  .bound = (gw_q16)gw_octets_get(from + AT_BOUND, 2)},
    };
    const struct gw_value_shape *shape = &header->shape;
    return shape->count >= 1 && shape->count <= GW_MESH_BYTES_MAX &&
           gw_value_bytes(shape) <= GW_MESH_BYTES_MAX;
}

bool gw_store_fits(const struct gw_store *store, uint64_t bytes, bool has_parts,
                   const struct gw_event *event)
{
    return has_parts ? gw_parts_fit(bytes, store->cfg.mtu, event->bytes, event->missing)
                     : bytes == event->bytes;
}

void gw_store_expect(struct gw_store *store, uint32_t rank, uint32_t tag, void *data,
                     uint64_t bytes)
{
    int code = gw_mesh_expect(store->cfg.mesh, rank, tag, data, bytes);
    GW_ASSERT(code == GW_OK); /* by gw_store_awaits() */
}

void gw_store_blame(struct gw_store *store, uint32_t rank, gw_time now)
{
    gw_mesh_fail(store->cfg.mesh, GW_JOB_BROKEN, rank, now);
}

void gw_store_serve(struct gw_store *store)
{
    const struct gw_store_cfg *cfg = &store->cfg;
    if (cfg->mesh->cfg.is_bare)
        return;
    store->is_serving = true;
    for (uint32_t rank = 0; rank < cfg->world; rank++)
        if (rank != cfg->rank)
            gw_store_expect(store, rank, gw_store_tag(GW_STORE_REQUEST, 0),
                            &store->pairs[rank].asked, GW_STORE_MESSAGE_SIZE);
}

bool gw_store_event(struct gw_store *store, const struct gw_event *event, gw_time now)
{
    uint32_t kind = (event->tag - GW_MESH_TAG_STORE) >> GW_STORE_TAG_KIND_SHIFT;
    uint32_t rank = gw_mesh_rank_of(store->cfg.mesh, event->peer);
    bool asks = kind == GW_STORE_REQUEST || kind == GW_STORE_DATA;
    if (!store->is_serving || kind >= GW_STORE_KINDS || rank == store->cfg.world ||
        event->kind > GW_EVENT_RECEIVED)
        return false;
    gw_mesh_note_message(store->cfg.mesh);
    if (asks == (event->kind == GW_EVENT_RECEIVED))
        gw_store_owner_event(store, rank, event, now);
    else
        gw_store_calls_event(store, rank, event, now);
    return true;
}

void gw_store_advance(struct gw_store *store, gw_time now)
{
    if (!store->is_serving || gw_mesh_state(store->cfg.mesh) == GW_MESH_OVER)
        return;
    gw_store_calls_advance(store, now);
    gw_store_owner_advance(store, now);
}

bool gw_store_keeps_values(const struct gw_store *store)
{
    return store->values.map_memory && store->values.map.count != 0;
}

bool gw_store_has_work(const struct gw_store *store)
{
    return store->tasks.count != 0 && gw_mesh_state(store->cfg.mesh) != GW_MESH_OVER;
}

bool gw_store_poll(struct gw_store *store, struct gw_store_done *done)
{
    if (store->ended_queue.count == 0)
        return false;
    struct gw_store_work *call =
        &store->calls[store->ended[gw_index_queue_pop(&store->ended_queue)]];
    *done = (struct gw_store_done){
        .call = call->call.call, .missing = call->missing, .refusal = call->refusal};
    call->state = GW_STORE_CALL_FREE;
    return true;
}

void gw_store_drop(struct gw_store *store)
{
    struct gw_mesh *mesh = store->cfg.mesh;
    for (uint32_t i = 0; i < store->cfg.limit; i++) {
        struct gw_store_work *call = &store->calls[i];
        if (call->state > GW_STORE_CALL_WAITS && call->state < GW_STORE_CALL_ENDED)
            gw_mesh_forget(mesh, call->call.data, gw_value_bytes(&call->call.shape));
        call->state = GW_STORE_CALL_FREE;
    }
    store->call_count = 0;
    gw_index_queue_clear(&store->ended_queue);
    gw_store_owner_drop(store);
    gw_mesh_forget(mesh, store, gw_store_size(store->cfg.world, store->cfg.limit));
    memset(store->pairs, 0, store->cfg.world * sizeof(*store->pairs));
    store->is_serving = false;
}
