/* Stands in for the store until there is one: no call of it is taken. */
#include "base/error.h"
#include "core/ranks/store.h"

#define ABSENT __attribute__((weak))

struct gw_store {
    uint32_t world;
};

ABSENT uint32_t gw_store_flows(uint32_t world, uint32_t limit)
{
    (void)world;
    (void)limit;
    return 0;
}

ABSENT uint32_t gw_store_awaits(uint32_t world, uint32_t limit)
{
    (void)world;
    (void)limit;
    return 0;
}

ABSENT size_t gw_store_size(uint32_t world, uint32_t limit)
{
    (void)world;
    (void)limit;
    return sizeof(struct gw_store);
}

ABSENT struct gw_store *gw_store_init(void *memory, const struct gw_store_cfg *cfg)
{
    struct gw_store *store = memory;
    *store = (struct gw_store){.world = cfg->world};
    return store;
}

ABSENT void gw_store_fini(struct gw_store *store)
{
    (void)store;
}

ABSENT void gw_store_serve(struct gw_store *store)
{
    (void)store;
}

ABSENT int gw_store_start(struct gw_store *store, const struct gw_store_call *call)
{
    (void)store;
    (void)call;
    return GW_ERR_INVALID;
}

ABSENT bool gw_store_event(struct gw_store *store, const struct gw_event *event, gw_time now)
{
    (void)store;
    (void)event;
    (void)now;
    return false;
}

ABSENT void gw_store_advance(struct gw_store *store, gw_time now)
{
    (void)store;
    (void)now;
}

ABSENT bool gw_store_poll(struct gw_store *store, struct gw_store_done *done)
{
    (void)store;
    (void)done;
    return false;
}

ABSENT void gw_store_drop(struct gw_store *store)
{
    (void)store;
}

ABSENT bool gw_store_has_work(const struct gw_store *store)
{
    (void)store;
    return false;
}

ABSENT uint32_t gw_store_awaited(const struct gw_store *store)
{
    return store->world;
}
