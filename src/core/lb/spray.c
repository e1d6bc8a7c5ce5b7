/*
 * Oblivious packet spraying: a new entropy for every packet or train, at random (Dixit et al.,
 * INFOCOM 2013, in SMaRTT-REPS, section 4.1) or in turn, from a random one on.
 *
 * Invariant: feedback never changes a choice.
 */
#include "core/lb/lb.h"

#include "core/lb/entropy.h"

enum spray_order {
    ORDER_RANDOM,
    ORDER_TURNS,
};

struct spray_cfg {
    uint32_t entropies;
    uint32_t order; /* enum spray_order */
};

struct spray {
    struct gw_prng prng;
    uint16_t next; /* in turn: for the next packet */
};

_Static_assert(sizeof(struct spray) <= GW_LB_STATE_MAX, "state fits");

static void spray_init(void *state, const void *config, const struct gw_path *path,
                       struct gw_prng prng)
{
    struct spray *spray = state;
    const struct spray_cfg *cfg = config;
    (void)path;
    *spray = (struct spray){.prng = prng};
    if (cfg->order == ORDER_TURNS)
        spray->next = gw_entropy_random(&spray->prng, cfg->entropies);
}

static uint16_t spray_pick(void *state, const void *config, const struct gw_lb_next *next,
                           gw_time now)
{
    struct spray *spray = state;
    const struct spray_cfg *cfg = config;
    (void)next;
    (void)now;
    if (cfg->order == ORDER_RANDOM)
        return gw_entropy_random(&spray->prng, cfg->entropies);
    uint16_t entropy = spray->next;
    spray->next = gw_entropy_next(entropy, cfg->entropies);
    return entropy;
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
             "entropies to draw from, 1 to 65536; at least 4 per path (the header field's range)",
             .least = 1, .most = GW_ENTROPIES_MAX),
    {
        .name = "order",
        .type = GW_PARAM_ENUM,
        .offset = offsetof(struct spray_cfg, order),
        .initial = "random",
        .choices = "random|turns",
        .help = "entropies are drawn, or taken one after the other (the authors' simulator of "
                "SMaRTT-REPS: turns)",
    },
};

static const struct gw_preset presets[] = {
    {
        .name = "drafts",
        .settings = "entropies=256 order=turns",
        .help = "as the authors of SMaRTT-REPS ran it",
    },
};

const struct gw_lb_ops gw_lb_spray = {
    .algo =
        {
            .name = "spray",
            .summary = "another path per packet, whatever is heard of them",
            .source = "Dixit et al., INFOCOM 2013",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct spray_cfg),
            .state_size = sizeof(struct spray),
        },
    .init = spray_init,
    .pick = spray_pick,
    .on_ack = spray_on_ack,
    .on_trim = spray_on_trim,
    .on_timeout = spray_on_timeout,
};
