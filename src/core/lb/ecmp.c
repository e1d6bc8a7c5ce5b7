/*
 * ECMP: one entropy per flow, drawn at random when the flow starts (RFC 2992).
 *
 * Invariant: every packet of a flow carries the same entropy, so a flow takes one path.
 */
#include "core/lb/lb.h"

struct ecmp {
    uint16_t entropy;
};

_Static_assert(sizeof(struct ecmp) <= GW_LB_STATE_MAX, "state fits");

static void ecmp_init(void *state, const void *config, const struct gw_path *path,
                      struct gw_prng prng)
{
    struct ecmp *ecmp = state;
    (void)config;
    (void)path;
    ecmp->entropy = (uint16_t)gw_prng_below(&prng, UINT32_C(1) << 16);
}

static uint16_t ecmp_pick(void *state, const void *config, const struct gw_lb_next *next,
                          gw_time now)
{
    const struct ecmp *ecmp = state;
    (void)config;
    (void)next;
    (void)now;
    return ecmp->entropy;
}

static void ecmp_on_ack(void *state, const void *config, const struct gw_lb_echo *echo, gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void ecmp_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                         gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void ecmp_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    (void)state;
    (void)config;
    (void)sent_at;
    (void)now;
}

const struct gw_lb_ops gw_lb_ecmp = {
    .algo =
        {
            .name = "ecmp",
            .summary = "one random path per flow",
            .source = "RFC 2992",
            .state_size = sizeof(struct ecmp),
        },
    .init = ecmp_init,
    .pick = ecmp_pick,
    .on_ack = ecmp_on_ack,
    .on_trim = ecmp_on_trim,
    .on_timeout = ecmp_on_timeout,
};
