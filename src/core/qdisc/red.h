/*
 * Random early detection: which packets a queue marks with CE.
 *
 * The chance rises linearly with the instantaneous queue from 0 at kmin to 1 at kmax and is 1
 * above; with kmin equal to kmax it is a step. At dequeue the queue is what stays behind, at
 * enqueue it includes the arrival. Only ECN-capable packets are marked, and CE is never cleared
 * (SMaRTT-REPS, section 3.5; RFC 3168).
 *
 * A discipline has a struct gw_red_cfg in its options and GW_RED_PARAMS in their table.
 */
#ifndef GW_CORE_RED_H
#define GW_CORE_RED_H

#include "base/fixed.h"
#include "core/qdisc/qdisc.h"

/* The order of the words of the option. */
enum gw_red_mark {
    GW_RED_DEQUEUE,
    GW_RED_ENQUEUE,
    GW_RED_OFF,
};

struct gw_red_cfg {
    uint32_t mark; /* enum gw_red_mark */
    gw_q16 kmin;
    gw_q16 kmax;
};

/* Rows of a parameter table: `member` is the struct gw_red_cfg within `cfg_type`. */
#define GW_RED_PARAMS(cfg_type, member)                                                            \
    GW_RED_PARAM_MARK(cfg_type, member), GW_RED_PARAM_KMIN(cfg_type, member),                      \
        GW_RED_PARAM_KMAX(cfg_type, member)

#define GW_RED_PARAM_MARK(cfg_type, member)                                                        \
    {                                                                                              \
        .name = "mark", .type = GW_PARAM_ENUM, .offset = offsetof(cfg_type, member.mark),          \
        .initial = "dequeue", .choices = "dequeue|enqueue|off",                                    \
        .help = "when CE is decided (the authors' simulator)"                                      \
    }

#define GW_RED_PARAM_KMIN(cfg_type, member)                                                        \
    {                                                                                              \
        .name = "kmin", .type = GW_PARAM_Q16, .offset = offsetof(cfg_type, member.kmin),           \
        .initial = "20%",                                                                          \
        .help = "share of the capacity up to which nothing is marked (SMaRTT-REPS, section 3.5)"   \
    }

#define GW_RED_PARAM_KMAX(cfg_type, member)                                                        \
    {                                                                                              \
        .name = "kmax", .type = GW_PARAM_Q16, .offset = offsetof(cfg_type, member.kmax),           \
        .initial = "80%",                                                                          \
        .help = "share of the capacity above which all is marked (SMaRTT-REPS, section 3.5)"       \
    }

struct gw_red {
    uint64_t slope; /* chance per byte above kmin, in 1/2^48 */
    uint32_t kmin;  /* bytes */
    uint32_t kmax;  /* bytes, at least kmin */
    uint32_t mark;  /* enum gw_red_mark */
};

/* `share` of `capacity` to the nearest byte; shares above 16384 count as 16384. */
static inline uint32_t gw_red_share(gw_q16 share, uint32_t capacity)
{
    const gw_q16 largest = 16384 * GW_Q16_ONE;
    gw_q16 factor = share < 0 ? 0 : share < largest ? share : largest;
    gw_q16 bytes = (factor * capacity + GW_Q16_ONE / 2) / GW_Q16_ONE;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static inline const char *gw_red_check(const struct gw_red_cfg *cfg)
{
    return cfg->kmax < cfg->kmin ? "kmax: must not be below kmin" : NULL;
}

/* Marks as configured for a queue of `capacity`, and everything above `bytes`. */
static inline void gw_red_init(struct gw_red *red, const struct gw_red_cfg *cfg, uint32_t capacity,
                               uint32_t bytes)
{
    uint32_t kmin = gw_red_share(cfg->kmin, capacity);
    uint32_t kmax = gw_red_share(cfg->kmax, capacity);
    kmin = kmin < bytes ? kmin : bytes;
    kmax = kmax < bytes ? kmax : bytes;
    if (kmax < kmin)
        kmax = kmin;
    *red = (struct gw_red){
        .slope = kmax > kmin ? (UINT64_C(1) << 48) / (kmax - kmin) : 0,
        .kmin = kmin,
        .kmax = kmax,
        .mark = cfg->mark,
    };
}

/* Decides over one packet of a queue that holds `queued` bytes. */
static inline void gw_red_mark(const struct gw_red *red, struct gw_qdisc_state *state,
                               struct gw_prng *prng, struct gw_pkt *pkt, uint32_t queued)
{
    if (queued <= red->kmin || (pkt->q.ecn != GW_ECN_ECT0 && pkt->q.ecn != GW_ECN_ECT1))
        return;
    if (queued <= red->kmax && !gw_prng_chance(prng, ((queued - red->kmin) * red->slope) >> 16))
        return;
    pkt->q.ecn = GW_ECN_CE;
    state->marks++;
}

#endif
