/*
 * REPS with a cache of entropies and a frozen mode (REPS, EuroSys 2025, and the authors'
 * simulator).
 *
 * A ring keeps the entropies of the latest ACKs without CE. Every packet takes the oldest that is
 * still fresh, which uses it up after `lifetime` packets; when none is fresh it draws at random.
 * Until the first ACK the entropies are walked one after the other.
 *
 * A timeout means that some path is broken, since trimming reports what congestion takes. The ring
 * is then frozen for a while: packets go round all its entries, fresh or not, since those were
 * alive. The first feedback after that time empties the ring, and a few packets explore at random.
 *
 * Invariant: fresh <= stored <= slots, and the fresh entries are the newest: those just before
 * `head`.
 */
#include "core/lb/lb.h"

#include "core/lb/entropy.h"

enum {
    SLOTS_MAX = 16,
};

struct cache_cfg {
    uint32_t entropies;
    uint32_t slots;
    uint32_t lifetime;
    uint32_t explore;
    gw_time freeze;
};

struct cache {
    struct gw_prng prng;
    gw_time thaw_at; /* while frozen */
    uint16_t ring[SLOTS_MAX];
    uint16_t next;    /* of the walk */
    uint16_t explore; /* packets that still draw at random */
    uint8_t head;     /* slot for the next ACK */
    uint8_t stored;   /* slots that have been filled */
    uint8_t fresh;    /* entries that packets may still use up */
    uint8_t uses;     /* of the oldest fresh entry so far */
    uint8_t turn;     /* slot that a packet takes next while frozen */
    bool is_frozen;
    bool has_ack;
};

_Static_assert(sizeof(struct cache) <= GW_LB_STATE_MAX, "state fits");

static uint8_t slot_count(const struct cache_cfg *cfg)
{
    return cfg->slots == 0 ? 1 : cfg->slots < SLOTS_MAX ? (uint8_t)cfg->slots : SLOTS_MAX;
}

static void cache_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_prng prng)
{
    struct cache *cache = state;
    const struct cache_cfg *cfg = config;
    (void)path;
    *cache = (struct cache){.prng = prng};
    cache->next = gw_entropy_random(&cache->prng, cfg->entropies);
}

static uint16_t take_oldest(struct cache *cache, const struct cache_cfg *cfg)
{
    uint8_t slots = slot_count(cfg);
    uint16_t entropy = cache->ring[(cache->head + slots - cache->fresh) % slots];
    if (++cache->uses >= cfg->lifetime) {
        cache->uses = 0;
        cache->fresh--;
    }
    return entropy;
}

static uint16_t cache_pick(void *state, const void *config, const struct gw_lb_next *next,
                           gw_time now)
{
    struct cache *cache = state;
    const struct cache_cfg *cfg = config;
    (void)next;
    (void)now;
    if (cache->explore > 0) {
        cache->explore--;
        return gw_entropy_random(&cache->prng, cfg->entropies);
    }
    if (cache->is_frozen && cache->stored > 0) {
        uint8_t slot = cache->turn < cache->stored ? cache->turn : 0;
        cache->turn = (uint8_t)(slot + 1);
        return cache->ring[slot];
    }
    if (!cache->is_frozen && cache->fresh > 0)
        return take_oldest(cache, cfg);
    if (cache->has_ack)
        return gw_entropy_random(&cache->prng, cfg->entropies);
    uint16_t entropy = cache->next;
    cache->next = gw_entropy_next(entropy, cfg->entropies);
    return entropy;
}

static void thaw(struct cache *cache, const struct cache_cfg *cfg, gw_time now)
{
    if (!cache->is_frozen || !gw_time_before(cache->thaw_at, now))
        return;
    cache->is_frozen = false;
    cache->head = cache->stored = cache->fresh = cache->uses = cache->turn = 0;
    cache->explore = cfg->explore < UINT16_MAX ? (uint16_t)cfg->explore : UINT16_MAX;
}

static void keep(struct cache *cache, const struct cache_cfg *cfg, uint16_t entropy)
{
    uint8_t slots = slot_count(cfg);
    cache->ring[cache->head] = entropy;
    cache->head = (uint8_t)((cache->head + 1) % slots);
    cache->stored += cache->stored < slots;
    if (cache->fresh < slots)
        cache->fresh++;
    else
        cache->uses = 0; /* the oldest was overwritten */
}

static void cache_on_ack(void *state, const void *config, const struct gw_lb_echo *echo,
                         gw_time now)
{
    struct cache *cache = state;
    const struct cache_cfg *cfg = config;
    thaw(cache, cfg, now);
    cache->has_ack = true;
    /* An echo that this flow cannot have sent is no advice. */
    if (!echo->ce && echo->entropy < gw_entropy_count(cfg->entropies))
        keep(cache, cfg, echo->entropy);
}

static void cache_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                          gw_time now)
{
    (void)echo;
    thaw(state, config, now);
}

static void cache_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    struct cache *cache = state;
    const struct cache_cfg *cfg = config;
    (void)sent_at;
    thaw(cache, cfg, now);
    if (cache->is_frozen || cache->explore > 0)
        return;
    cache->is_frozen = true;
    cache->thaw_at = gw_time_add(now, cfg->freeze);
}

static const struct gw_param params[] = {
    GW_PARAM(struct cache_cfg, COUNT, entropies, "65536",
             "entropies to draw from, 1 to 65536; at least 4 per path (the header field's range)",
             .least = 1, .most = GW_ENTROPIES_MAX),
    GW_PARAM(struct cache_cfg, COUNT, slots, "8",
             "entropies that are kept, 1 to 16 (the Ultra Ethernet simulator)", .least = 1,
             .most = SLOTS_MAX),
    GW_PARAM(struct cache_cfg, COUNT, lifetime, "1",
             "packets per kept entropy; packets per ACK if those are coalesced (the authors' "
             "simulator)"),
    GW_PARAM(struct cache_cfg, COUNT, explore, "16",
             "packets at random entropies after a freeze, at most 65535 (the Ultra Ethernet "
             "simulator)",
             .most = UINT16_MAX),
    GW_PARAM(struct cache_cfg, TIME, freeze, "10ms",
             "least time that only kept entropies are used after a timeout (the authors' "
             "simulator)"),
};

const struct gw_lb_ops gw_lb_reps_cache = {
    .algo =
        {
            .name = "reps-cache",
            .summary = "recycle entropies by way of a cache, which freezes after a timeout",
            .source = "REPS, EuroSys 2025",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct cache_cfg),
            .state_size = sizeof(struct cache),
        },
    .init = cache_init,
    .pick = cache_pick,
    .on_ack = cache_on_ack,
    .on_trim = cache_on_trim,
    .on_timeout = cache_on_timeout,
};
