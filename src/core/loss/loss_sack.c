/*
 * Loss detection as TCP has it: a packet is lost when `dup_thresh` packets that were sent later
 * have arrived (RFC 6675, section 4, IsLost), and all in flight are when nothing has been heard for
 * a retransmission timeout (RFC 6298). Before that, one packet asks: a tail-loss probe (RFC 8985,
 * section 7). TCP has no NACKs; those of switches that trim are believed if `nacks` says so.
 *
 * Order is that of sending, not of sequence numbers, so a packet that was resent and lost again is
 * found like any other, where RFC 6675 alone would wait for the timeout. With as many arrivals
 * after it as the threshold says, everything sent before the dup_thresh-th newest arrival is lost.
 * The answer to a probe, which left two round trips after everything else, says that what was sent
 * before it is lost (RFC 8985's rule by time, in the one case in which the count cannot tell).
 *
 * ACKs echo the time at which the very copy left, as TCP's timestamps do (RFC 7323), so each is a
 * sample; Karn's rule remains for the back-off, which ends when something sent after the timeout
 * arrives. The first estimate is what the handshake, which is not modelled, would have measured.
 *
 * Invariant: rto_min <= period without back-off, unless a probe is due first; back-off is at most
 * 64 times; between two timeouts or arrivals of what was sent after it there is one probe.
 */
#include "core/loss/rto.h"

enum {
    SACK_DUP_THRESH_MAX = 8,
};

struct sack_cfg {
    uint32_t dup_thresh;
    gw_time rto_min;
    gw_time rto_initial;
    gw_q16 probe;
    bool nacks;
};

struct sack {
    gw_time newest[SACK_DUP_THRESH_MAX]; /* when the arrivals that left last did; latest first */
    gw_time srtt;                        /* smoothed */
    gw_time rttvar;                      /* its mean deviation */
    gw_time base;                        /* timeout without back-off */
    gw_time probe_after;                 /* shorter than `base`, or GW_TIME_NEVER: no probes */
    gw_time step_at; /* latest probe, repair or timeout; meaningless when none is open */
    uint8_t count;   /* of `newest` */
    uint8_t shift;   /* the timeout is base << shift */
    bool is_open;    /* nothing that left since step_at has arrived */
    bool is_probing; /* that was a probe */
    bool has_sample; /* an RTT was measured, or reckoned */
};

_Static_assert(sizeof(struct sack) <= GW_LOSS_STATE_MAX, "state fits");

static uint32_t dup_thresh_of(const struct sack_cfg *cfg)
{
    if (cfg->dup_thresh == 0)
        return 1;
    return cfg->dup_thresh < SACK_DUP_THRESH_MAX ? cfg->dup_thresh : SACK_DUP_THRESH_MAX;
}

static gw_time at_most(gw_time time, gw_time most)
{
    return time < most ? time : most;
}

/* Both periods from the estimate. */
static void sack_reckon(struct sack *s, const struct sack_cfg *cfg)
{
    gw_time rto = s->srtt + 4 * s->rttvar;
    if (!s->has_sample && cfg->rto_initial)
        rto = cfg->rto_initial;
    rto = rto < cfg->rto_min ? cfg->rto_min : rto;
    s->base = at_most(rto ? rto : 1, GW_RTO_BASE_MAX);
    gw_q16 factor = cfg->probe;
    unsigned __int128 probe =
        ((unsigned __int128)s->srtt * (uint64_t)(factor > 0 ? factor : 0)) >> 16;
    s->probe_after = factor > 0 && s->srtt && probe < s->base ? (gw_time)probe : GW_TIME_NEVER;
    if (s->probe_after == 0)
        s->probe_after = 1;
}

/* RFC 6298, (2.2), with the base RTT of the path as the sample of the handshake. */
static void sack_init(void *state, const void *config, const struct gw_path *path)
{
    struct sack *s = state;
    *s = (struct sack){.srtt = at_most(path->brtt, GW_RTO_BASE_MAX)};
    s->rttvar = s->srtt / 2;
    sack_reckon(s, config);
}

static bool sack_on_nack(void *state, const void *config)
{
    const struct sack_cfg *cfg = config;
    (void)state;
    return cfg->nacks;
}

/* RFC 6298, (2.3). */
static void sack_on_ack(void *state, const void *config, gw_time sent_at, gw_time rtt)
{
    struct sack *s = state;
    (void)sent_at;
    if (rtt == 0)
        return;
    rtt = at_most(rtt, GW_RTO_BASE_MAX);
    gw_time deviation = rtt > s->srtt ? rtt - s->srtt : s->srtt - rtt;
    s->rttvar = s->rttvar - s->rttvar / 4 + deviation / 4;
    s->srtt = s->srtt - s->srtt / 8 + rtt / 8;
    s->has_sample = true;
    sack_reckon(s, config);
}

static bool may_probe(const struct sack *s)
{
    return !s->is_open && s->probe_after != GW_TIME_NEVER;
}

static gw_time sack_period(const void *state, const void *config)
{
    const struct sack *s = state;
    (void)config;
    return may_probe(s) ? s->probe_after : s->base << s->shift;
}

/* Something begins that only the arrival of what leaves from now on ends. */
static void sack_open(struct sack *s, bool is_probing, gw_time now)
{
    s->is_open = true;
    s->is_probing = is_probing;
    s->step_at = now;
}

static enum gw_loss_verdict sack_on_timeout(void *state, const void *config, gw_time sent_at,
                                            gw_time now)
{
    struct sack *s = state;
    (void)config;
    (void)sent_at;
    bool probes = may_probe(s);
    if (!probes)
        s->shift += s->shift < GW_RTO_SHIFT_MAX;
    sack_open(s, probes, now);
    return probes ? GW_LOSS_PROBE : GW_LOSS_ALL;
}

/* Puts an arrival in its place, which is nearly always the first. */
static void sack_note(struct sack *s, uint32_t room, gw_time sent_at)
{
    uint32_t at = s->count;
    if (at < room)
        s->count++;
    else if (gw_time_before(s->newest[--at], sent_at))
        s->newest[at] = sent_at;
    else
        return;
    for (; at > 0 && gw_time_before(s->newest[at - 1], sent_at); at--)
        s->newest[at] = s->newest[at - 1];
    s->newest[at] = sent_at;
}

static gw_time sack_on_delivery(void *state, const void *config, gw_time sent_at)
{
    struct sack *s = state;
    uint32_t dup_thresh = dup_thresh_of(config);
    gw_time lost_before = GW_TIME_NEVER;
    sack_note(s, dup_thresh, sent_at);
    if (s->count == dup_thresh)
        lost_before = s->newest[dup_thresh - 1];
    if (!s->is_open || gw_time_before(sent_at, s->step_at))
        return lost_before;
    s->is_open = false;
    s->shift = 0;
    bool tells_more = lost_before == GW_TIME_NEVER || gw_time_before(lost_before, s->step_at);
    return s->is_probing && tells_more ? s->step_at : lost_before;
}

static void sack_on_loss(void *state, const void *config, gw_time now)
{
    (void)config;
    sack_open(state, false, now);
}

static const struct gw_param params[] = {
    GW_PARAM(struct sack_cfg, COUNT, dup_thresh, "3",
             "later packets that must arrive before one counts as lost, 1 to 8 (RFC 6675)"),
    GW_PARAM(struct sack_cfg, TIME, rto_min, "10ms",
             "smallest timeout without back-off (DLCP, section 5.2; RFC 6298 has 1 s, made for the "
             "Internet, and Linux 200 ms)"),
    GW_PARAM(
        struct sack_cfg, TIME, rto_initial, "0",
        "timeout before the first sample, if above rto_min; 0: what a handshake over the empty "
        "path would have led to (RFC 6298 (2.1): 1 s)"),
    GW_PARAM(struct sack_cfg, Q16, probe, "2",
             "smoothed RTTs without an answer after which a tail-loss probe leaves; 0: no probes "
             "(RFC 8985, section 7.2)"),
    GW_PARAM(struct sack_cfg, BOOL, nacks, "no",
             "a packet of which a switch kept the header alone is lost (own choice; TCP: no)"),
};

static const struct gw_preset presets[] = {
    {.name = "rfc",
     .settings = "rto_min=1s rto_initial=1s probe=0",
     .help = "RFC 6675 and RFC 6298 alone"},
    {.name = "linux", .settings = "rto_min=200ms", .help = "the kernel's smallest timeout"},
    {.name = "dlcp",
     .settings = "probe=0",
     .help = "as DLCP simulates TCP, in ns-3: 10 ms, no probes"},
    {.name = "pias",
     .settings = "rto_min=2ms probe=0",
     .help = "as PIAS simulates TCP, in ns-2: 2 ms, no probes"},
    {.name = "dlcp-testbed", .settings = "rto_min=5ms", .help = "as DLCP sets the kernel: 5 ms"},
};

const struct gw_loss_ops gw_loss_sack = {
    .algo =
        {
            .name = "sack",
            .summary = "TCP: three later arrivals, tail-loss probe, timeout from measured RTTs",
            .source = "RFC 6675, RFC 8985 section 7, RFC 6298",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .cfg_size = sizeof(struct sack_cfg),
            .state_size = sizeof(struct sack),
        },
    .init = sack_init,
    .on_nack = sack_on_nack,
    .on_ack = sack_on_ack,
    .period = sack_period,
    .on_timeout = sack_on_timeout,
    .on_delivery = sack_on_delivery,
    .on_loss = sack_on_loss,
    .restarts = true,
};
