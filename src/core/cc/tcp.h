/*
 * What the windows of TCP have in common (RFC 5681): slow start up to a threshold, what a cut and a
 * timeout do, when an ACK may make the window grow, and what the next message of a connection knows
 * of this one; and Reno's rules for growth and losses, which more than one of them keeps.
 *
 * An episode is named by time instead of sequence numbers: it begins with the cut, and lasts until
 * something that was sent after the cut is acknowledged or lost. Losses and marks of what was sent
 * before the cut belong to it. That is RFC 6582's `recover`, RFC 3168's "once per window" and the
 * end of a CWR state in one comparison.
 *
 * In an episode that began with a cut the window follows what is in flight down to its new value,
 * in proportion to what arrives (PRR, RFC 6937, as Linux and ns-3 do for losses and marks alike).
 * Without, nothing is sent until enough has left the network. The one sends through the congestion
 * for a round trip longer, the other falls silent for part of one.
 *
 * A window grows only if half of it is used (RFC 7661, section 4.2): a sender's own port, where
 * nothing is lost, would let it grow without end.
 *
 * Invariant: a packet <= cwnd <= cwnd_max; after a cut that is not a timeout at least cwnd_min.
 */
#ifndef GW_CORE_TCP_H
#define GW_CORE_TCP_H

#include "core/cc/cc.h"
#include "core/cc/window.h"

struct gw_tcp_cfg {
    uint32_t initial;
    uint32_t slow_start;
    uint32_t cwnd_min;
    uint64_t cwnd_max;
    bool prr;
};

/* Rows of a parameter table: `member` is the struct gw_tcp_cfg within `cfg_type`. */
#define GW_TCP_PARAMS(cfg_type, member)                                                            \
    GW_PARAM_IN(cfg_type, member, COUNT, initial, "10", "first window, packets (RFC 6928)"),       \
        GW_PARAM_IN(cfg_type, member, COUNT, slow_start, "2",                                      \
                    "most packets that one ACK adds in slow start (RFC 3465; RFC 5681: 1)"),       \
        GW_PARAM_IN(cfg_type, member, COUNT, cwnd_min, "2",                                        \
                    "smallest window after a cut, packets (RFC 5681, equation 4)"),                \
        GW_PARAM_IN(cfg_type, member, BYTES, cwnd_max, "0",                                        \
                    "largest window, what a receiver's buffer holds; 0: no limit (own choice)"),   \
        GW_PARAM_IN(cfg_type, member, BOOL, prr, "yes",                                            \
                    "a cut takes effect in proportion to what arrives, not at once (RFC 6937)")

struct gw_tcp {
    uint64_t cwnd;      /* 1/65536 byte */
    uint64_t ssthresh;  /* 1/65536 byte: below it, slow start */
    uint64_t cwnd_max;  /* 1/65536 byte */
    gw_time cut_at;     /* when the window last fell; when the flow began, at first */
    gw_time timeout_at; /* when a timeout last did; likewise */
    bool is_lost;       /* nothing that was sent since a timeout has been acknowledged */
    bool is_reducing;   /* nothing that was sent since the cut has been; and all of this since: */
    uint32_t flight;    /* bytes in flight before it */
    uint32_t delivered; /* bytes acknowledged */
    uint32_t lost;      /* bytes lost */
};

/* What a flow leaves for the next: its threshold in bytes, and a number of the algorithm's own. */
static inline uint64_t gw_tcp_remember(const struct gw_tcp *tcp, uint32_t own)
{
    uint64_t ssthresh = gw_min_u64(tcp->ssthresh >> 16, UINT32_MAX);
    return (uint64_t)own << 32 | (ssthresh ? ssthresh : 1);
}

/* The algorithm's own number, if an earlier flow left one. */
static inline uint32_t gw_tcp_memory(const struct gw_path *path)
{
    return (uint32_t)(path->memory >> 32);
}

static inline uint64_t gw_tcp_packets(const struct gw_path *path, uint32_t count)
{
    return gw_min_u64((uint64_t)count * path->mtu, UINT32_MAX) << 16;
}

static inline void gw_tcp_init(struct gw_tcp *tcp, const struct gw_tcp_cfg *cfg,
                               const struct gw_path *path, gw_time now)
{
    const uint64_t packet = (uint64_t)path->mtu << 16, most = (uint64_t)UINT32_MAX << 16;
    uint64_t limit = cfg->cwnd_max ? gw_min_u64(cfg->cwnd_max, UINT32_MAX) << 16 : most;
    *tcp = (struct gw_tcp){
        .cwnd_max = limit < packet ? packet : limit,
        .ssthresh = most,
        .cut_at = now,
        .timeout_at = now,
    };
    uint64_t first = gw_tcp_packets(path, cfg->initial);
    if (path->window) { /* the connection is not new */
        uint64_t ssthresh = path->memory & UINT32_MAX;
        first = gw_min_u64(path->window, UINT32_MAX) << 16;
        tcp->ssthresh = ssthresh == UINT32_MAX ? most : ssthresh ? ssthresh << 16 : first;
    }
    tcp->cwnd = gw_cwnd_clamp(first, packet, tcp->cwnd_max);
}

/* Whether a packet sent then belongs to no earlier episode. */
static inline bool gw_tcp_is_new(const struct gw_tcp *tcp, gw_time sent_at)
{
    return !gw_time_before(sent_at, tcp->cut_at);
}

/* What was in flight before that feedback, in 1/65536 byte, but no more than the window. */
static inline uint64_t gw_tcp_flight(const struct gw_tcp *tcp, uint32_t in_flight, uint32_t bytes)
{
    return gw_min_u64((uint64_t)gw_add_u32(in_flight, bytes) << 16, tcp->cwnd);
}

/* An ACK for a packet sent at `sent_at` that asks for no cut: may it make the window grow? */
static inline bool gw_tcp_may_grow(struct gw_tcp *tcp, const struct gw_cc_ack *ack, gw_time sent_at)
{
    if (!gw_tcp_is_new(tcp, sent_at))
        return false;
    tcp->is_lost = tcp->is_reducing = false;
    return gw_tcp_flight(tcp, ack->in_flight, ack->bytes) >= tcp->cwnd / 2;
}

static inline bool gw_tcp_is_slow_start(const struct gw_tcp *tcp)
{
    return tcp->cwnd < tcp->ssthresh;
}

static inline void gw_tcp_slow_start(struct gw_tcp *tcp, const struct gw_tcp_cfg *cfg,
                                     const struct gw_path *path, uint32_t bytes)
{
    uint64_t step = gw_min_u64((uint64_t)bytes << 16, gw_tcp_packets(path, cfg->slow_start));
    tcp->cwnd = gw_min_u64(tcp->cwnd + step, tcp->cwnd_max);
}

/* A packet per window of ACKs times `gain`, in 1/65536; returns the step in 1/65536 byte. */
static inline uint64_t gw_tcp_step(uint64_t cwnd, const struct gw_path *path, uint32_t bytes,
                                   uint64_t gain)
{
    return gw_mul_shift(gw_cwnd_share(bytes, cwnd), path->mtu * gain, 32);
}

/* The window falls to `to`. */
static inline void gw_tcp_cut(struct gw_tcp *tcp, const struct gw_tcp_cfg *cfg,
                              const struct gw_path *path, uint64_t to, gw_time now)
{
    uint64_t least = gw_tcp_packets(path, cfg->cwnd_min ? cfg->cwnd_min : 1);
    tcp->ssthresh = gw_min_u64(to < least ? least : to, tcp->cwnd_max);
    tcp->cwnd = tcp->ssthresh;
    tcp->cut_at = now;
    tcp->is_reducing = cfg->prr;
    tcp->flight = tcp->delivered = tcp->lost = 0;
}

/* What some feedback changed, in bytes; one of the latter two is 0. */
struct gw_tcp_change {
    uint32_t in_flight; /* now */
    uint32_t acked;     /* of it until now */
    uint32_t lost;      /* likewise */
};

/* Bytes that may be in flight while a cut takes effect (RFC 6937, section 3.1, with the slow start
 * reduction bound). */
static inline uint64_t gw_tcp_reduced(const struct gw_tcp *tcp, const struct gw_path *path,
                                      const struct gw_tcp_change *change)
{
    uint64_t target = tcp->ssthresh >> 16, in_flight = change->in_flight, news = change->acked;
    int64_t sent = (int64_t)in_flight + tcp->delivered + tcp->lost - tcp->flight;
    int64_t more;
    if (in_flight > target) {
        uint64_t share = (tcp->delivered * target + tcp->flight - 1) / tcp->flight;
        more = (int64_t)share - sent;
    } else {
        int64_t bound = (int64_t)tcp->delivered - sent;
        bound = (bound > (int64_t)news ? bound : (int64_t)news) + path->mtu;
        more = (int64_t)(target - in_flight) < bound ? (int64_t)(target - in_flight) : bound;
    }
    if (sent <= 0 && more < (int64_t)path->mtu)
        more = path->mtu; /* the first of them leaves at once */
    return more > 0 ? in_flight + (uint64_t)more : in_flight;
}

/* The window that the flow is told; see the two below. */
static inline void gw_tcp_report(struct gw_tcp *tcp, const struct gw_path *path,
                                 struct gw_tcp_change change, struct gw_cc_window *window)
{
    window->cwnd = tcp->cwnd >> 16;
    if (!tcp->is_reducing)
        return;
    if (tcp->flight == 0)
        tcp->flight = gw_add_u32(change.in_flight, change.acked + change.lost);
    tcp->delivered = gw_add_u32(tcp->delivered, change.acked);
    tcp->lost = gw_add_u32(tcp->lost, change.lost);
    window->cwnd = gw_tcp_reduced(tcp, path, &change);
}

static inline void gw_tcp_report_ack(struct gw_tcp *tcp, const struct gw_path *path,
                                     const struct gw_cc_ack *ack, struct gw_cc_window *window)
{
    struct gw_tcp_change change = {.in_flight = ack->in_flight, .acked = ack->bytes};
    gw_tcp_report(tcp, path, change, window);
}

static inline void gw_tcp_report_loss(struct gw_tcp *tcp, const struct gw_path *path,
                                      const struct gw_cc_loss *loss, struct gw_cc_window *window)
{
    struct gw_tcp_change change = {.in_flight = loss->in_flight, .lost = loss->bytes};
    gw_tcp_report(tcp, path, change, window);
}

/* All in flight is lost: from one packet by slow start to `to`; to what it was to be before when
 * nothing has arrived in between (RFC 5681, section 3.1). */
static inline void gw_tcp_time_out(struct gw_tcp *tcp, const struct gw_tcp_cfg *cfg,
                                   const struct gw_path *path, uint64_t to, gw_time now)
{
    uint64_t before = tcp->ssthresh;
    gw_tcp_cut(tcp, cfg, path, to, now);
    if (tcp->is_lost)
        tcp->ssthresh = before;
    tcp->cwnd = (uint64_t)path->mtu << 16;
    tcp->is_reducing = false;
    tcp->timeout_at = now;
    tcp->is_lost = true;
}

/* What a loss asks for. */
enum gw_tcp_loss {
    GW_TCP_LOSS_KNOWN,   /* its episode has had its cut */
    GW_TCP_LOSS_CUT,     /* fast recovery begins */
    GW_TCP_LOSS_TIMEOUT, /* all is lost */
};

static inline enum gw_tcp_loss gw_tcp_judge(const struct gw_tcp *tcp, const struct gw_cc_loss *loss)
{
    if (loss->is_timeout)
        return gw_time_before(loss->sent_at, tcp->timeout_at) ? GW_TCP_LOSS_KNOWN
                                                              : GW_TCP_LOSS_TIMEOUT;
    return gw_tcp_is_new(tcp, loss->sent_at) ? GW_TCP_LOSS_CUT : GW_TCP_LOSS_KNOWN;
}

/* An ACK makes Reno's window grow: by slow start, or by a packet per round trip (RFC 5681, section
 * 3.1). */
static inline void gw_tcp_reno_grow(struct gw_tcp *tcp, const struct gw_tcp_cfg *cfg,
                                    const struct gw_path *path, uint32_t bytes)
{
    if (gw_tcp_is_slow_start(tcp))
        gw_tcp_slow_start(tcp, cfg, path, bytes);
    else
        tcp->cwnd =
            gw_min_u64(tcp->cwnd + gw_tcp_step(tcp->cwnd, path, bytes, GW_Q16_ONE), tcp->cwnd_max);
}

/* A loss leaves Reno half of what was in flight (RFC 5681, equation 4). */
static inline void gw_tcp_reno_lose(struct gw_tcp *tcp, const struct gw_tcp_cfg *cfg,
                                    const struct gw_path *path, const struct gw_cc_loss *loss,
                                    gw_time now)
{
    enum gw_tcp_loss verdict = gw_tcp_judge(tcp, loss);
    uint64_t half = gw_tcp_flight(tcp, loss->in_flight, loss->bytes) / 2;
    if (verdict == GW_TCP_LOSS_CUT)
        gw_tcp_cut(tcp, cfg, path, half, now);
    else if (verdict == GW_TCP_LOSS_TIMEOUT)
        gw_tcp_time_out(tcp, cfg, path, half, now);
}

#endif
