/*
 * Round robin: switches take their equal-cost ports in turn, packet by packet (DLCP, section 3.2.3,
 * first option; pFabric, SIGCOMM 2013, section 4).
 *
 * All of it is done by the switches, which ignore the entropy; so it is always 0.
 */
#include "core/lb/lb.h"

static void round_robin_init(void *state, const void *config, const struct gw_path *path,
                             struct gw_prng prng)
{
    (void)state;
    (void)config;
    (void)path;
    (void)prng;
}

static uint16_t round_robin_pick(void *state, const void *config, const struct gw_lb_next *next,
                                 gw_time now)
{
    (void)state;
    (void)config;
    (void)next;
    (void)now;
    return 0;
}

static void round_robin_on_ack(void *state, const void *config, const struct gw_lb_echo *echo,
                               gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void round_robin_on_trim(void *state, const void *config, const struct gw_lb_echo *echo,
                                gw_time now)
{
    (void)state;
    (void)config;
    (void)echo;
    (void)now;
}

static void round_robin_on_timeout(void *state, const void *config, gw_time sent_at, gw_time now)
{
    (void)state;
    (void)config;
    (void)sent_at;
    (void)now;
}

const struct gw_lb_ops gw_lb_round_robin = {
    .algo =
        {
            .name = "round-robin",
            .summary = "switches take equal-cost ports in turn",
            .source = "DLCP, section 3.2.3",
            .state_size = 0,
        },
    .spread = GW_SPREAD_TURNS,
    .init = round_robin_init,
    .pick = round_robin_pick,
    .on_ack = round_robin_on_ack,
    .on_trim = round_robin_on_trim,
    .on_timeout = round_robin_on_timeout,
};
