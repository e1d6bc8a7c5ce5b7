/* Which application of an endpoint gets which packets of its job, and what it says to others. */
#include "host.h"
#include "support.h"

#include "core/codec.h"
#include "core/host/app.h"

enum {
    ADDRESS = 1,
    OTHER = 2,
    JOB = 3,
    MTU = 64,
    PKTS = 16,
    APP_EVENTS = 2,
};

/* Counts what it gets. */
struct recorder {
    struct gw_app app;
    uint32_t count;
    uint32_t turns; /* in which it got them */
    uint8_t last_op;
};

static void recorder_input(struct gw_app *app, struct gw_pkt **pkts, uint32_t count, gw_time now)
{
    struct recorder *recorder = (struct recorder *)app;
    (void)now;
    recorder->count += count;
    recorder->turns++;
    recorder->last_op = pkts[count - 1]->agg_flags;
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(app->pool, pkts[i]);
}

/* Counts and fires no more. */
static void recorder_expire(struct gw_app *app, gw_time now)
{
    (void)now;
    ((struct recorder *)app)->count++;
    gw_app_arm(app, GW_TIME_NEVER);
}

static const struct gw_app_ops worker_ops = {
    .role = GW_APP_WORKER,
    .input = recorder_input,
    .expire = recorder_expire,
};
static const struct gw_app_ops server_ops = {.role = GW_APP_SERVER, .input = recorder_input};
static const struct gw_app_ops member_ops = {.role = GW_APP_MEMBER, .input = recorder_input};
static const struct gw_app_ops coordinator_ops = {.role = GW_APP_COORDINATOR,
                                                  .input = recorder_input};

struct fixture {
    struct gw_test_host host;
    struct recorder worker;
    struct recorder server;
    struct recorder member;
    struct recorder coordinator;
};

static void fixture_open(struct fixture *f)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(ADDRESS, MTU);
    cfg.apps_max = 4;
    cfg.app_events_max = APP_EVENTS;
    cfg.announcers_max = 1;
    *f = (struct fixture){.worker.app = {.ops = &worker_ops, .job = JOB},
                          .server.app = {.ops = &server_ops, .job = JOB},
                          .member.app = {.ops = &member_ops, .job = JOB},
                          .coordinator.app = {.ops = &coordinator_ops, .job = JOB}};
    gw_test_host_open(&f->host, &cfg, PKTS);
    assert_int_equal(gw_app_attach(&f->worker.app, f->host.endpoint), 0);
    assert_int_equal(gw_app_attach(&f->server.app, f->host.endpoint), 0);
    assert_int_equal(gw_app_attach(&f->member.app, f->host.endpoint), 0);
    assert_int_equal(gw_app_attach(&f->coordinator.app, f->host.endpoint), 0);
}

static void fixture_close(struct fixture *f)
{
    gw_app_detach(&f->worker.app);
    gw_app_detach(&f->server.app);
    gw_app_detach(&f->member.app);
    gw_app_detach(&f->coordinator.app);
    gw_test_host_close(&f->host);
}

static struct gw_pkt *pkt_of(struct fixture *f, uint32_t job, enum gw_pkt_kind kind, uint8_t op)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    assert_non_null(pkt);
    *pkt = (struct gw_pkt){.q.kind = (uint8_t)kind,
                           .src = OTHER,
                           .dst = ADDRESS,
                           .flow = job,
                           .agg_flags = op,
                           .buf = GW_BUF_NONE};
    return pkt;
}

static void feed(struct fixture *f, uint32_t job, enum gw_pkt_kind kind, uint8_t op)
{
    struct gw_pkt *pkt = pkt_of(f, job, kind, op);
    gw_node_input(gw_endpoint_node(f->host.endpoint), 0, &pkt, 1, 0);
}

static void app_input__goes_by_kind_and_operation(void **state)
{
    (void)state;
    static const bool is_for_server[GW_JOB_OPS] = {
        [GW_JOB_JOIN] = true,
        [GW_JOB_INSTALLED] = true,
        [GW_JOB_READY] = true,
        [GW_JOB_LEAVE] = true,
    };
    struct fixture f;
    fixture_open(&f);
    for (uint32_t op = 0; op < GW_JOB_OPS; op++) {
        f.member.count = f.coordinator.count = 0;
        feed(&f, JOB, GW_PKT_JOB, (uint8_t)op);
        assert_int_equal(f.coordinator.count, is_for_server[op]);
        assert_int_equal(f.member.count, !is_for_server[op]);
        assert_int_equal((is_for_server[op] ? &f.coordinator : &f.member)->last_op, op);
    }
    assert_true(f.server.count == 0 && f.worker.count == 0);
    feed(&f, JOB, GW_PKT_GRAD, 0);
    assert_true(f.server.count == 1 && f.worker.count == 0);
    feed(&f, JOB, GW_PKT_PARAM, 0);
    assert_true(f.server.count == 1 && f.worker.count == 1);
    fixture_close(&f);
}

/* Each application gets what follows one another of its own, and nothing else. */
static void app_input__hands_over_what_is_for_one_together(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    struct gw_pkt *pkts[] = {
        pkt_of(&f, JOB, GW_PKT_PARAM, 0),
        pkt_of(&f, JOB, GW_PKT_PARAM, GW_AGG_RAW),
        pkt_of(&f, JOB, GW_PKT_GRAD, 0),
        pkt_of(&f, JOB, GW_PKT_PARAM, 0),
        pkt_of(&f, JOB, GW_PKT_PARAM, GW_AGG_SLOT),
        pkt_of(&f, JOB, GW_PKT_PARAM, 0),
        pkt_of(&f, JOB + 1, GW_PKT_PARAM, 0),
        pkt_of(&f, JOB, GW_PKT_PARAM, 0),
        pkt_of(&f, JOB, GW_PKT_PARAM, 0),
        pkt_of(&f, JOB, GW_PKT_JOB, GW_JOB_JOIN),
        pkt_of(&f, JOB, GW_PKT_JOB, GW_JOB_FAILED),
        pkt_of(&f, JOB, GW_PKT_PARAM, 0),
    };
    pkts[8]->dst = OTHER;
    gw_node_input(gw_endpoint_node(f.host.endpoint), 0, pkts, 12, 0);
    assert_int_equal(f.worker.count, 6);
    assert_int_equal(f.worker.turns, 5);
    assert_int_equal(f.server.count, 1);
    assert_int_equal(f.coordinator.count, 1);
    assert_int_equal(f.member.count, 1);
    assert_int_equal(gw_endpoint_stats(f.host.endpoint)->stray, 3);
    fixture_close(&f);
}

static void app_input__counts_what_has_no_application(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    feed(&f, JOB + 1, GW_PKT_JOB, GW_JOB_JOIN);
    feed(&f, JOB + 1, GW_PKT_JOB, GW_JOB_WELCOME);
    assert_true(gw_endpoint_stats(f.host.endpoint)->stray == 2);
    assert_true(f.server.count == 0 && f.worker.count == 0);
    fixture_close(&f);
}

static void detach__leaves_its_packets_without_application(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    feed(&f, JOB, GW_PKT_PARAM, 0);
    gw_app_detach(&f.worker.app);
    feed(&f, JOB, GW_PKT_PARAM, 0);
    assert_int_equal(f.worker.count, 1);
    assert_true(gw_endpoint_stats(f.host.endpoint)->stray == 1);
    assert_int_equal(gw_app_attach(&f.worker.app, f.host.endpoint), 0);
    feed(&f, JOB, GW_PKT_PARAM, 0);
    assert_int_equal(f.worker.count, 2);
    fixture_close(&f);
}

static bool never_sends(const struct gw_endpoint *ep, const struct gw_sender *sender, gw_time now)
{
    (void)ep;
    (void)sender;
    (void)now;
    return false;
}

/* How many packets want to leave; the last of them in *last. */
static uint32_t drain(struct fixture *f, struct gw_pkt *last)
{
    struct gw_node *node = gw_endpoint_node(f->host.endpoint);
    struct gw_pkt *pkt;
    node->ready_count = 0;
    for (uint32_t count = 0;; count++) {
        if (!(gw_node_output(node, 0, &pkt, 1, 0) & ~GW_OUTPUT_MORE))
            return count;
        *last = *pkt;
        gw_pkt_release(&f->host.pool, pkt);
    }
}

/* A burst that is over before it has left is as good as given up: the next is announced anew. */
static void app_busy__announces_what_begins_then(void **state)
{
    (void)state;
    static const struct gw_sender_ops ops = {.can_send = never_sends};
    struct fixture f;
    struct gw_pkt pkt = {.seq = 0};
    fixture_open(&f);
    struct gw_app *app = &f.worker.app;
    app->sender.ops = &ops;
    for (uint32_t i = 0; i < 3; i++) {
        gw_app_busy(app, OTHER, 0);
        assert_false(gw_app_is_announced(app)); /* it does not want that */
    }
    app->notice = (struct gw_notice_terms){.job = JOB, .units = 2, .rtt = GW_US};
    for (uint32_t i = 0; i < 3; i++) {
        gw_app_wake(app); /* what is in its ring waits all the same */
        gw_app_busy(app, OTHER, 0);
        assert_true(gw_app_is_announced(app));
        assert_int_equal(drain(&f, &pkt), 1);
        assert_int_equal(pkt.q.kind, GW_PKT_NOTICE);
        assert_int_equal(pkt.flow, JOB);
        assert_int_equal(pkt.seq, i);
        assert_int_equal(pkt.q.key, gw_flow_key(ADDRESS, OTHER, JOB));
        if (i == 1)
            gw_app_rest(app);
        else
            gw_app_idle(app, 0);
        assert_int_equal(gw_node_deadline(gw_endpoint_node(f.host.endpoint)), GW_TIME_NEVER);
    }
    fixture_close(&f);
}

static void app_pkt__marks_the_first_of_a_burst(void **state)
{
    (void)state;
    static const struct gw_sender_ops ops = {.can_send = never_sends};
    static const uint32_t seqs[] = {8, 9, 8, 10};
    struct fixture f;
    struct gw_pkt pkt;
    fixture_open(&f);
    struct gw_app *app = &f.worker.app;
    app->sender.ops = &ops;
    app->notice = (struct gw_notice_terms){.job = JOB, .units = 2, .rtt = GW_US};
    gw_app_busy(app, OTHER, 0);
    drain(&f, &pkt);
    gw_node_expire(gw_endpoint_node(f.host.endpoint), 2 * GW_US);
    for (uint32_t i = 0; i < GW_COUNT_OF(seqs); i++) {
        gw_app_pkt(app, &pkt, OTHER, seqs[i], 1);
        assert_int_equal(pkt.q.flags, seqs[i] == 8 ? GW_PKT_HEAD : 0); /* also when resent */
    }
    gw_app_idle(app, 2 * GW_US);
    gw_app_busy(app, OTHER, 2 * GW_US); /* in the same busy period */
    gw_app_pkt(app, &pkt, OTHER, 8, 1);
    assert_int_equal(pkt.q.flags, 0);
    fixture_close(&f);
}

static void app_pkt__has_the_key_of_its_destination(void **state)
{
    (void)state;
    static const uint32_t dsts[] = {0, OTHER, OTHER, ADDRESS, OTHER, 0};
    struct fixture f;
    struct gw_pkt pkt;
    fixture_open(&f);
    for (uint32_t i = 0; i < GW_COUNT_OF(dsts); i++) {
        gw_app_pkt(&f.worker.app, &pkt, dsts[i], i, 1);
        assert_int_equal(pkt.dst, dsts[i]);
        assert_int_equal(pkt.q.key, gw_flow_key(ADDRESS, dsts[i], JOB));
        assert_int_equal(pkt.q.flags, 0); /* also fragment 0 */
    }
    fixture_close(&f);
}

/* Every bit is set: what the driver sends is what was filled in, whatever was there before. */
static void job_pkt__is_complete(void **state)
{
    (void)state;
    static const struct gw_codec codec = {.cookie = 5};
    struct fixture f;
    struct gw_pkt decoded;
    struct gw_frame frame;
    fixture_open(&f);
    struct gw_pkt *pkt = gw_pkt_claim(&f.host.pool);
    memset(pkt, 0xaa, sizeof(*pkt));
    pkt->buf = GW_BUF_NONE;
    gw_pkt_release(&f.host.pool, pkt);
    pkt = gw_app_job_pkt(&f.member.app, OTHER, GW_JOB_LEAVE);
    assert_non_null(pkt);
    assert_int_equal(pkt->q.class, GW_CLASS_CONTROL);
    assert_int_equal(pkt->q.ecn, GW_ECN_ECT0);
    assert_int_equal(pkt->q.size, gw_test_host_cfg(ADDRESS, MTU).hdr);
    assert_true(pkt->src == ADDRESS && pkt->dst == OTHER && pkt->flow == JOB);
    assert_true(pkt->agg_flags == GW_JOB_LEAVE && pkt->epoch == 0 && pkt->key == 0 &&
                pkt->seq == 0);
    gw_codec_encode(&codec, pkt, &frame);
    memset(&decoded, 0, sizeof(decoded));
    assert_int_equal(gw_codec_decode(&codec, &frame, 0, &decoded), 0);
    decoded.q.size = pkt->q.size;
    decoded.q.next = pkt->q.next;
    assert_memory_equal(&decoded, pkt, sizeof(*pkt));
    gw_pkt_release(&f.host.pool, pkt);
    fixture_close(&f);
}

static void app_claim__counts_an_empty_pool(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_pkt *pkts[PKTS];
    fixture_open(&f);
    for (uint32_t i = 0; i < PKTS; i++)
        assert_non_null(pkts[i] = gw_app_claim(&f.worker.app));
    assert_true(gw_endpoint_stats(f.host.endpoint)->pool_empty == 0);
    assert_null(gw_app_claim(&f.worker.app));
    assert_null(gw_app_job_pkt(&f.member.app, OTHER, GW_JOB_JOIN));
    assert_true(gw_endpoint_stats(f.host.endpoint)->pool_empty == 2);
    for (uint32_t i = 0; i < PKTS; i++)
        gw_pkt_release(&f.host.pool, pkts[i]);
    fixture_close(&f);
}

/* Every promise finds room when its time has come, whatever else is promised or waits. */
static void app_promise__is_limited_until_events_are_polled(void **state)
{
    (void)state;
    struct fixture f;
    struct gw_event event = {.kind = GW_EVENT_REDUCED};
    uint32_t room = 0;
    fixture_open(&f);
    for (; gw_app_may_promise(&f.worker.app); room++)
        gw_app_promise(&f.worker.app);
    assert_true(room >= APP_EVENTS && f.worker.app.promised == room);
    assert_false(gw_app_may_promise(&f.member.app));
    for (uint32_t i = 0; i < room; i++) {
        event.tag = i;
        gw_app_post(&f.worker.app, &event);
        assert_false(gw_app_may_promise(&f.member.app));
    }
    for (uint32_t i = 0; i < room; i++) {
        assert_int_equal(gw_endpoint_poll(f.host.endpoint, &event, 1), 1);
        assert_int_equal(event.tag, i);
        assert_true(gw_app_may_promise(&f.member.app));
    }
    assert_int_equal(gw_endpoint_poll(f.host.endpoint, &event, 1), 0);
    fixture_close(&f);
}

static void detach__ends_promises_and_the_timer(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    struct gw_node *node = gw_endpoint_node(f.host.endpoint);
    while (gw_app_may_promise(&f.worker.app))
        gw_app_promise(&f.worker.app);
    gw_app_arm(&f.worker.app, 5);
    assert_true(gw_node_deadline(node) == 5);
    gw_app_detach(&f.worker.app);
    assert_true(gw_app_may_promise(&f.member.app));
    assert_true(gw_node_deadline(node) == GW_TIME_NEVER);
    assert_int_equal(gw_app_attach(&f.worker.app, f.host.endpoint), 0);
    assert_int_equal(f.worker.app.promised, 0);
    fixture_close(&f);
}

static void app_arm_by__never_delays(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    struct gw_node *node = gw_endpoint_node(f.host.endpoint);
    gw_app_arm_by(&f.worker.app, 7);
    gw_app_arm_by(&f.worker.app, 9);
    assert_true(f.worker.app.timer_at == 7 && gw_node_deadline(node) == 7);
    gw_app_arm_by(&f.worker.app, 6);
    assert_true(f.worker.app.timer_at == 6 && gw_node_deadline(node) == 6);
    gw_node_expire(node, 5);
    assert_int_equal(f.worker.count, 0);
    gw_node_expire(node, 6);
    assert_int_equal(f.worker.count, 1);
    assert_true(f.worker.app.timer_at == GW_TIME_NEVER);
    assert_true(gw_node_deadline(node) == GW_TIME_NEVER);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(app_input__goes_by_kind_and_operation),
        cmocka_unit_test(app_input__hands_over_what_is_for_one_together),
        cmocka_unit_test(app_input__counts_what_has_no_application),
        cmocka_unit_test(detach__leaves_its_packets_without_application),
        cmocka_unit_test(app_busy__announces_what_begins_then),
        cmocka_unit_test(app_pkt__marks_the_first_of_a_burst),
        cmocka_unit_test(app_pkt__has_the_key_of_its_destination),
        cmocka_unit_test(job_pkt__is_complete),
        cmocka_unit_test(app_claim__counts_an_empty_pool),
        cmocka_unit_test(app_promise__is_limited_until_events_are_polled),
        cmocka_unit_test(detach__ends_promises_and_the_timer),
        cmocka_unit_test(app_arm_by__never_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
