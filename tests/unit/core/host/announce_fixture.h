/* Bursts of messages from one endpoint to a peer that the test plays; see endpoint_fixture.h. */
#ifndef GW_TESTS_ANNOUNCE_FIXTURE_H
#define GW_TESTS_ANNOUNCE_FIXTURE_H

#include "endpoint_fixture.h"

enum {
    JOB = 77,
    UNITS = 3,
    WINDOW_PKTS = 4,
    COPIES = 64,
};

/* What the sender says of a round trip that it has not measured. */
#define RTT (20 * GW_US)

static inline struct gw_endpoint_cfg announce_cfg(uint32_t announcers)
{
    struct gw_endpoint_cfg cfg = fixture_cfg();
    cfg.announcers_max = announcers;
    return cfg;
}

static inline void announce_open(struct endpoint_fixture *f, uint32_t announcers)
{
    struct gw_endpoint_cfg cfg = announce_cfg(announcers);
    fixture_open(f, &cfg, "4000");
}

static inline struct gw_send send_of(struct endpoint_fixture *f, uint32_t job)
{
    return (struct gw_send){
        .peer = THEIRS,
        .bytes = 2 * MTU,
        .class = 2,
        .transport = &f->transport,
        .path = gw_test_path(&f->cfg, RATE_BPS, BRTT),
        .notice = {.job = job, .units = UNITS, .rtt = RTT},
    };
}

static inline uint32_t start(struct endpoint_fixture *f, const struct gw_send *send)
{
    uint32_t flow;
    assert_int_equal(gw_endpoint_send(f->endpoint, send, &flow, f->now), GW_OK);
    fixture_take_ready(f);
    return flow;
}

/* A message of two packets in a burst of `job`. */
static inline uint32_t start_for(struct endpoint_fixture *f, uint32_t job)
{
    struct gw_send send = send_of(f, job);
    return start(f, &send);
}

/* All that may leave now, at least one packet; all but the first are dropped. */
static inline struct gw_pkt first_out(struct endpoint_fixture *f, uint32_t count)
{
    struct gw_pkt pkts[COPIES];
    assert_int_equal(fixture_pull(f, pkts, COPIES), count);
    return pkts[0];
}

static inline void quiet(struct endpoint_fixture *f)
{
    struct gw_pkt pkts[COPIES];
    assert_int_equal(fixture_pull(f, pkts, COPIES), 0);
}

/* What the peer answers to a notice. */
static inline struct gw_pkt answer_to(const struct gw_pkt *notice)
{
    struct gw_pkt answer = *notice;
    answer.q =
        (struct gw_qpkt){.size = notice->q.size, .class = GW_CLASS_CONTROL, .kind = GW_PKT_NOTICE};
    answer.src = notice->dst;
    answer.dst = notice->src;
    answer.notice.is_answer = true;
    return answer;
}

static inline void reply(struct endpoint_fixture *f, const struct gw_pkt *notice)
{
    struct gw_pkt answer = answer_to(notice);
    fixture_input(f, &answer);
}

/* Goes on to `at`, with what is due until then, and with nothing leaving. */
static inline void pass_until(struct endpoint_fixture *f, gw_time at)
{
    while (gw_node_deadline(f->node) != GW_TIME_NEVER &&
           !gw_time_before(at, gw_node_deadline(f->node))) {
        fixture_expire(f);
        quiet(f);
    }
    f->now = at;
}

/* The peer acknowledges packets of a message of two: it is sent. */
static inline void finish(struct endpoint_fixture *f, const struct gw_pkt *pkt)
{
    struct gw_pkt last = *pkt;
    last.seq = 1;
    fixture_ack(f, &last, 2);
    assert_int_equal(fixture_event(f).kind, GW_EVENT_SENT);
}

/* One burst of `job` from the notice to the end, of which the notice takes `rtt`. */
static inline void whole_burst(struct endpoint_fixture *f, uint32_t job, gw_time rtt)
{
    start_for(f, job);
    struct gw_pkt notice = first_out(f, 1);
    assert_int_equal(notice.q.kind, GW_PKT_NOTICE);
    gw_time at = f->now + rtt;
    uint64_t sent = fixture_stats(f)->notices_sent;
    while (gw_node_deadline(f->node) != GW_TIME_NEVER &&
           gw_time_before(gw_node_deadline(f->node), at)) {
        struct gw_pkt pkts[COPIES];
        fixture_expire(f);
        fixture_pull(f, pkts, COPIES);
    }
    f->now = at;
    assert_in_range(fixture_stats(f)->notices_sent, sent, sent + 1);
    reply(f, &notice);
    struct gw_pkt pkts[COPIES];
    fixture_pull(f, pkts, COPIES);
    struct gw_pkt data = fixture_data(notice.flow, 0, 2);
    data.src = OURS;
    data.dst = THEIRS;
    finish(f, &data);
}

#endif
