/* The store: its memory and messages. Both ends are in files of their own; see team_store.h. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "net/ranks/team_store_impl.h"

_Static_assert(sizeof(struct gw_team_store_message) == GW_TEAM_STORE_MESSAGE_SIZE &&
                   offsetof(struct gw_team_store_message, data) == GW_TEAM_STORE_HEADER_SIZE,
               "the message has no holes");

uint32_t gw_team_store_flows(uint32_t world)
{
    return 2 * GW_TEAM_CALLS_MAX + world; /* of each call a request and data; replies */
}

uint32_t gw_team_store_awaits(uint32_t world)
{
    return GW_TEAM_CALLS_MAX + 3 * world; /* values; an answer, a request and data of each */
}

int gw_team_store_open(const struct gw_team_store_cfg *cfg, struct gw_team_store **result)
{
    struct gw_team_store *store = calloc(1, sizeof(*store));
    if (!store)
        return GW_ERR_NO_MEMORY;
    *result = store;
    store->cfg = *cfg;
    gw_index_queue_init(&store->tasks, cfg->world);
    gw_team_values_init(&store->values, gw_kernels_best(gw_cpu_features()));
    store->pairs = calloc(cfg->world, sizeof(*store->pairs));
    store->ranks = calloc(cfg->world, sizeof(*store->ranks));
    return store->pairs && store->ranks ? GW_OK : GW_ERR_NO_MEMORY;
}

void gw_team_store_close(struct gw_team_store *store)
{
    if (!store)
        return;
    for (uint32_t rank = 0; store->pairs && rank < store->cfg.world; rank++)
        free(store->pairs[rank].staged);
    gw_team_values_fini(&store->values);
    free(store->pairs);
    free(store->ranks);
    free(store);
}

uint32_t gw_team_store_tag(enum gw_team_store_kind kind, uint32_t number)
{
    return GW_TEAM_TAG_STORE | (uint32_t)kind << GW_TEAM_STORE_TAG_KIND_SHIFT |
           (number & GW_TEAM_STORE_TAG_NUMBER);
}

bool gw_team_store_owns(uint32_t tag)
{
    return tag >= GW_TEAM_TAG_STORE && tag < gw_team_store_tag(GW_TEAM_STORE_KINDS, 0);
}

void gw_team_store_write(struct gw_team_store_message *message, uint8_t word, uint64_t key,
                         const struct gw_team_value_shape *shape)
{
    memset(message, 0, GW_TEAM_STORE_HEADER_SIZE);
    message->word = word;
    message->type = (uint8_t)shape->type;
    message->key = htobe64(key);
    message->count = htobe64(shape->count);
}

bool gw_team_store_read(const struct gw_team_store_message *message, uint64_t bytes, uint64_t *key,
                        struct gw_team_value_shape *shape)
{
    static const uint8_t zero[sizeof(message->zero)];
    if (bytes < GW_TEAM_STORE_HEADER_SIZE || message->type >= GW_DTYPE_SUMMABLE ||
        memcmp(message->zero, zero, sizeof(zero)) != 0)
        return false;
    *key = be64toh(message->key);
    *shape = (struct gw_team_value_shape){.count = be64toh(message->count),
                                          .type = (enum gw_dtype)message->type};
    return shape->count >= 1 && shape->count <= GW_TEAM_MESSAGE_MAX &&
           gw_team_value_bytes(shape) <= GW_TEAM_MESSAGE_MAX;
}

void gw_team_store_expect(struct gw_team_store *store, uint32_t rank, uint32_t tag, void *data,
                          uint64_t bytes)
{
    int code = gw_team_expect(store->cfg.comm, rank, tag, data, bytes);
    GW_ASSERT(code == GW_OK);
}

void gw_team_store_blame(struct gw_team_store *store, uint32_t rank, gw_time now)
{
    gw_team_blame(store->cfg.comm, rank, "sent a push or pull that makes no sense", now);
}

void gw_team_store_serve(struct gw_team_store *store)
{
    const struct gw_team_store_cfg *cfg = &store->cfg;
    for (uint32_t rank = 0; rank < cfg->world; rank++)
        if (rank != cfg->rank)
            gw_team_store_expect(store, rank, gw_team_store_tag(GW_TEAM_STORE_REQUEST, 0),
                                 &store->pairs[rank].asked, GW_TEAM_STORE_MESSAGE_SIZE);
}

void gw_team_store_event(struct gw_team_store *store, uint32_t rank, const struct gw_event *event,
                         gw_time now)
{
    enum gw_team_store_kind kind =
        (enum gw_team_store_kind)((event->tag - GW_TEAM_TAG_STORE) >> GW_TEAM_STORE_TAG_KIND_SHIFT);
    bool asks = kind == GW_TEAM_STORE_REQUEST || kind == GW_TEAM_STORE_DATA;
    if (asks == (event->kind == GW_EVENT_RECEIVED))
        gw_team_store_owner_event(store, rank, event, now);
    else
        gw_team_store_calls_event(store, rank, event, now);
}

void gw_team_store_advance(struct gw_team_store *store, gw_time now)
{
    gw_team_store_calls_advance(store, now);
    gw_team_store_owner_advance(store, now);
}

bool gw_team_store_has_work(const struct gw_team_store *store)
{
    return store->tasks.count != 0;
}
