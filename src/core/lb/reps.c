/*
 * REPS: recycled entropies (SMaRTT-REPS, section 3.6 and Algorithm 4).
 *
 * The first bdp of a flow explores entropies one after the other. Then every packet carries the
 * entropy of the latest ACK without CE, since that path had room; after a marked ACK the next
 * entropy of the walk is tried.
 *
 * Where few packets are heard of (blasts), an entropy is used for one packet per feedback, since
 * the next feedback is far off, and the walk has the others: hundreds on one path would fill it.
 *
 * Beyond the printed algorithm: a trimmed packet and a timeout count as a marked ACK; the walk
 * starts at a random entropy; and until the first feedback the walk goes on, so that a small bdp
 * does not put all flows on one constant entropy. The variant `author` is the authors' simulator:
 * it explores until it has sent one packet per entropy, or one bdp, the larger of the two, without
 * those that are sent again, and after bad feedback draws every entropy at random until a clean ACK
 * arrives. There a timeout says nothing of the path, so a flow all of whose packets are on a broken
 * one does not leave it; here that takes `heed_timeouts: no`.
 *
 * Invariant: every entropy is below the option `entropies`, which need not be a power of two.
 */
#include "core/lb/lb.h"

#include "core/lb/entropy.h"

enum reps_variant {
    VARIANT_PAPER,
    VARIANT_AUTHOR,
};

struct reps_cfg {
    uint32_t entropies;
    uint32_t variant; /* enum reps_variant */
    bool heed_timeouts;
};

struct reps {
    struct gw_prng prng;
    uint64_t explore; /* bytes that may still go to entropies of the walk */
    uint32_t untried; /* entropies that the walk has not reached yet */
    uint16_t next;    /* entropy that the walk takes next */
    uint16_t cached;  /* entropy for the next packet */
    bool has_cached;  /* feedback has chosen `cached` */
    bool is_sampled;  /* it is for one packet */
};

_Static_assert(sizeof(struct reps) <= GW_LB_STATE_MAX, "state fits");

static uint16_t reps_walk(struct reps *reps, const struct reps_cfg *cfg)
{
    uint16_t entropy = reps->next;
    reps->next = gw_entropy_next(entropy, cfg->entropies);
    reps->untried -= reps->untried > 0;
    return entropy;
}

/* Bytes of a flow that go to entropies of the walk. */
static uint64_t explored(const struct reps_cfg *cfg, const struct gw_path *path)
{
    uint64_t all = (uint64_t)gw_entropy_count(cfg->entropies) * path->mtu;
    return cfg->variant == VARIANT_AUTHOR && all > path->bdp ? all : path->bdp;
}

static void reps_init(void *state, const void *config, const struct gw_path *path,
                      struct gw_prng prng)
{
    struct reps *reps = state;
    const struct reps_cfg *cfg = config;
    bool author = cfg->variant == VARIANT_AUTHOR;
    *reps = (struct reps){
        .prng = prng,
        .explore = explored(cfg, path),
        .untried = author ? UINT32_MAX : gw_entropy_count(cfg->entropies),
        .is_sampled = path->is_sampled,
    };
    reps->next = author ? gw_entropy_next(0, cfg->entropies)
                        : gw_entropy_random(&reps->prng, cfg->entropies);
}

static uint16_t reps_pick(void *state, const void *config, const struct gw_lb_next *next,
                          gw_time now)
{
    struct reps *reps = state;
    const struct reps_cfg *cfg = config;
    (void)now;
    bool explores = reps->explore > 0 && reps->untried > 0;
    if (cfg->variant == VARIANT_PAPER || !next->is_resent)
        reps->explore -= next->bytes < reps->explore ? next->bytes : reps->explore;
    if (explores)
        return reps_walk(reps, cfg);
    if (reps->has_cached) {
        reps->has_cached = !reps->is_sampled;
        return reps->cached;
    }
    if (cfg->variant == VARIANT_AUTHOR)
        return gw_entropy_random(&reps->prng, cfg->entropies);
    return reps_walk(reps, cfg);
}

/* The path of some packet was congested or broken. */
static void reps_avoid(struct reps *reps, const struct reps_cfg *cfg)
{
    reps->has_cached = cfg->variant == VARIANT_PAPER;
    if (reps->has_cached)
        reps->cached = reps_walk(reps, cfg);
}

static void reps_on_ack(void *state, const void *config, const struct gw_lb_echo *echo, gw_time now)
{
    struct reps *reps = state;
    const struct reps_cfg *cfg = config;
    (void)now;
    /* An echo that this flow cannot have sent is no advice. */
    if (echo->ce || echo->entropy >= gw_entropy_count(cfg->entropies)) {
        reps_avoid(reps, cfg);
    } else {
        reps->cached = echo->entropy;
        reps->has_cached = true;
    }
}

static void reps_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                         gw_time now)
{
    (void)echo;
    (void)now;
    reps_avoid(state, config);
}

static void reps_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    const struct reps_cfg *cfg = config;
    (void)sent_at;
    (void)now;
    if (cfg->heed_timeouts)
        reps_avoid(state, cfg);
}

static const struct gw_param params[] = {
    GW_PARAM(struct reps_cfg, COUNT, entropies, "256",
             "entropies in use, 1 to 65536; at least 4 per path (Algorithm 4)", .least = 1,
             .most = GW_ENTROPIES_MAX),
    {
        .name = "variant",
        .type = GW_PARAM_ENUM,
        .offset = offsetof(struct reps_cfg, variant),
        .initial = "paper",
        .choices = "paper|author",
        .help = "after bad feedback the next entropy, or random ones until a clean ACK "
                "(Algorithm 4; the authors' simulator)",
    },
    GW_PARAM(struct reps_cfg, BOOL, heed_timeouts, "yes",
             "a timeout counts as a marked ACK (own choice; the authors' simulator: no)"),
};

static const struct gw_preset presets[] = {
    {.name = "paper", .settings = "", .help = "Algorithm 4: the defaults"},
    {.name = "author", .settings = "variant=author", .help = "the authors' simulator"},
    {
        .name = "drafts",
        .settings = "variant=author heed_timeouts=no",
        .help = "the same, where timeouts change no entropy: as the authors ran it",
    },
};

const struct gw_lb_ops gw_lb_reps = {
    .algo =
        {
            .name = "reps",
            .summary = "recycle entropies of packets that met no congestion",
            .source = "SMaRTT-REPS, section 3.6",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct reps_cfg),
            .state_size = sizeof(struct reps),
        },
    .init = reps_init,
    .pick = reps_pick,
    .on_ack = reps_on_ack,
    .on_trim = reps_on_trim,
    .on_timeout = reps_on_timeout,
};
