/*
 * Oblivious packet spraying: a new random entropy for every packet or train (Dixit et al., INFOCOM
 * 2013).
 *
 * Invariant: feedback never changes a choice.
 */
#include "core/lb/lb.h"

#include "core/lb/entropy.h"

struct spray_cfg {
    uint32_t entropies;
};

struct spray {
    struct gw_prng prng;
};

_Static_assert(sizeof(struct spray) <= GW_LB_STATE_MAX, "state fits");

static void spray_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_prng prng)
{
    struct spray *spray = state;
    (void)config;
    (void)path;
    spray->prng = prng;
}

static uint16_t spray_pick(void *state, const void *config, uint32_t bytes, gw_time now)
{
    struct spray *spray = state;
    const struct spray_cfg *cfg = config;
    (void)bytes;
    (void)now;
    return gw_entropy_random(&spray->prng, cfg->entropies);
}

static void spray_on_ack(void *state, const void *config, const struct gw_lb_echo *echo,
                         gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void spray_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                          gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void spray_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    (void)state;
    (void)config;
    (void)sent_at;
    (void)now;
}

static const struct gw_param params[] = {
    GW_PARAM(struct spray_cfg, COUNT, entropies, "65536",
             "entropies to draw from, 1 to 65536; at least 4 per path (the header field's range)"),
};

const struct gw_lb_ops gw_lb_spray = {
    .algo =
        {
            .name = "spray",
            .summary = "a random path per packet",
            .source = "Dixit et al., INFOCOM 2013",
            .params = params,
            .param_count = sizeof(params) / sizeof(params[0]),
            .cfg_size = sizeof(struct spray_cfg),
            .state_size = sizeof(struct spray),
        },
    .init = spray_init,
    .pick = spray_pick,
    .on_ack = spray_on_ack,
    .on_trim = spray_on_trim,
    .on_timeout = spray_on_timeout,
};
