/*
 * A flow of one of the TCPs by direct calls: round trips in which the whole window is acknowledged,
 * with the clock that belongs to them.
 */
#ifndef GW_TESTS_TCP_FIXTURE_H
#define GW_TESTS_TCP_FIXTURE_H

#include "cc_fixture.h"

/* A packet sent at `sent_at` is acknowledged now, and the window is full. */
static inline int64_t tcp_ack(struct flow *f, gw_time sent_at, bool ce)
{
    return flow_ack_with(f, &(struct gw_cc_ack){.bytes = MTU,
                                                .in_flight = (uint32_t)f->window.cwnd - MTU,
                                                .rtt = f->now - sent_at,
                                                .ce = ce});
}

static inline int64_t tcp_lose_with(struct flow *f, const struct gw_cc_loss *loss)
{
    uint64_t before = f->window.cwnd;
    f->ops->on_loss(f->state, &f->cfg, &f->path, loss, &f->window, f->now);
    return (int64_t)(f->window.cwnd - before);
}

/* A packet sent at `sent_at` is found lost now, and the window is full. */
static inline int64_t tcp_lose(struct flow *f, gw_time sent_at, bool is_timeout)
{
    return tcp_lose_with(f, &(struct gw_cc_loss){.bytes = MTU,
                                                 .in_flight = (uint32_t)f->window.cwnd - MTU,
                                                 .sent_at = sent_at,
                                                 .is_timeout = is_timeout});
}

static inline uint64_t packets_of(const struct flow *f)
{
    return f->window.cwnd / MTU;
}

/*
 * A round trip: the window's packets, sent one after the other from now on, are acknowledged one
 * base RTT after each, those with marks first; so it takes two of them. Nothing may make the window
 * fall but a mark.
 */
static inline void tcp_round(struct flow *f, uint64_t marks)
{
    const uint64_t count = packets_of(f);
    const gw_time begin = f->now, gap = f->path.brtt / (count + 1);
    for (uint64_t i = 0; i < count; i++) {
        f->now = begin + f->path.brtt + i * gap;
        int64_t change = tcp_ack(f, begin + i * gap, i < marks);
        assert_true(change >= 0 || i < marks);
    }
    f->now = begin + f->path.brtt + count * gap;
}

/* A flow whose cuts take effect at once, so that the window shows them; not started. */
static inline struct flow tcp_make(const char *name)
{
    struct flow f = flow_make(name);
    flow_set(&f, "prr", "no");
    return f;
}

/* Out of slow start, at a window of `packets` with nothing in common with what was before. */
static inline struct flow tcp_at(const char *name, uint32_t packets)
{
    struct flow f = tcp_make(name);
    f.path.window = (uint64_t)packets * MTU;
    flow_start(&f);
    assert_int_equal(packets_of(&f), packets);
    return f;
}

#endif
